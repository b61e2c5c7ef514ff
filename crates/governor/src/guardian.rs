//! The guardians: two small child processes that undo the governor's changes if the governor cannot.
//!
//! A governor that is killed, crashes or hangs must leave no job frozen. Each change is recorded, *before*
//! it is made, in memory that the governor shares with the guardians (`record`). The guardians only wait:
//!
//! ```text
//! governor ─ write: processes stopped, files changed ─▶ ┌────────┐
//!     │                                                 │ Record │ ◀─ read ─ guardian, guardian
//!     ├─ a heartbeat, each step ──────────────────────▶ └────────┘             │
//!     └─ the end of a pipe, which closes when the governor has ended ─────────▶ poll
//!
//! pipe closed:                       undo all at once, remove our cgroups when they are empty, and end
//! no heartbeat for LAPSE:            undo all, and continue to wait
//! ```
//!
//! With two guardians, one is left if the governor and the other guardian are killed together. If all three
//! are killed, the record remains: `vellum govern --recover` or the next governor in its directory undoes
//! the changes.
//!
//! A guardian allocates nothing and calls async-signal-safe functions only, so it can be forked by a process
//! of many threads. A guardian has its own session and blocks all signals but SIGKILL, so that a signal to
//! the governor's group does not end it.

use crate::record::{Failed, GUARDIANS, Record, Recovered, Table};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering;
use std::time::Duration;
use vellum_kernel::Pid;

/// The longest time that a job stays frozen under a governor that does nothing any more.
pub const LAPSE: Duration = Duration::from_secs(5);
/// The interval at which a guardian checks the beat.
const LOOK: Duration = Duration::from_millis(500);

/// The guardians could not be had.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot start the processes that let suspended jobs go on ({call}: {source}); check the limits on processes and open files (ulimit -a), and the space where the sockets are"
)]
pub struct GuardianError {
    call: &'static str,
    source: io::Error,
}

impl From<Failed> for GuardianError {
    fn from((call, source): Failed) -> GuardianError {
        GuardianError { call, source }
    }
}

/// The governor's end.
#[derive(Debug)]
pub(crate) struct Guardian {
    record: Record,
    pids: [libc::pid_t; GUARDIANS],
    /// Closed when this process ends, however it does.
    alive: OwnedFd,
    seen_undone: u64,
}

impl Guardian {
    /// Undoes what the last run in `directory` has left, and starts guardians with nothing to undo.
    pub(crate) fn start(directory: &Path) -> Result<(Guardian, Recovered), GuardianError> {
        let (record, recovered) = Record::open(directory)?;
        let (pids, alive) = guardians(&record)?;
        let seen_undone = record.table().undone.load(Ordering::Acquire);
        Ok((Guardian { record, pids, alive, seen_undone }, recovered))
    }

    /// Guardians in place of those of which one has ended. Everything must have been undone.
    pub(crate) fn start_again(&mut self) -> Result<(), GuardianError> {
        self.end();
        (self.pids, self.alive) = guardians(&self.record)?;
        Ok(())
    }

    /// The record, in which each change is entered before it is made.
    pub(crate) fn table(&self) -> &Table {
        self.record.table()
    }

    /// Reports that the governor lives. Returns whether everything was undone since the last call: then no
    /// job is suspended any more.
    pub(crate) fn beat(&mut self) -> bool {
        self.table().beat.fetch_add(1, Ordering::Release);
        let undone = self.table().undone.load(Ordering::Acquire);
        std::mem::replace(&mut self.seen_undone, undone) != undone
    }

    /// True if both guardians are alive. Otherwise nothing may be suspended.
    pub(crate) fn is_alive(&self) -> bool {
        // SAFETY: waits for our own children, without blocking; nothing is written.
        self.pids.iter().all(|pid| unsafe { libc::waitpid(*pid, null_mut(), libc::WNOHANG) == 0 })
    }

    pub(crate) fn pids(&self) -> [Pid; GUARDIANS] {
        self.pids.map(Pid)
    }

    fn end(&self) {
        for pid in self.pids.into_iter().filter(|pid| *pid > 0) {
            // SAFETY: our own child. One that was waited for is refused, unless its number was given to
            // another process: so it is asked first.
            unsafe {
                if libc::waitpid(pid, null_mut(), libc::WNOHANG) == 0 {
                    libc::kill(pid, libc::SIGKILL);
                    libc::waitpid(pid, null_mut(), 0);
                }
            }
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // Everything else has been undone by the governor. Groups in which jobs run on are left to the
        // guardians, which see the pipe close; the record says so to the next governor.
        let [_, groups_left] = self.table().sweep();
        if groups_left == 0 {
            self.end();
            self.record.remove();
        }
    }
}

fn guardians(record: &Record) -> Result<([libc::pid_t; GUARDIANS], OwnedFd), GuardianError> {
    let failed = |call| GuardianError { call, source: io::Error::last_os_error() };
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to `ends`.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(failed("pipe2"));
    }
    // SAFETY: both descriptors were just made and belong to nobody else.
    let [watched, alive] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    let mut pids = [0; GUARDIANS];
    for pid in &mut pids {
        // SAFETY: the child calls async-signal-safe functions only, on memory made before, and ends in _exit.
        *pid = match unsafe { libc::fork() } {
            0 => guard(record.table, watched.as_raw_fd()),
            pid @ 1.. => pid,
            // A guardian that was started sees the pipe close and ends.
            _ => return Err(failed("fork")),
        };
    }
    record.table().guarded_by(pids);
    Ok((pids, alive))
}

/// A guardian's life.
fn guard(table: NonNull<Table>, watched: RawFd) -> ! {
    // SAFETY: these calls change only this process, the forked child; the signal set and the name live across
    // them.
    unsafe {
        libc::setsid();
        let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), null_mut());
        libc::prctl(libc::PR_SET_NAME, c"vellum-guardian".as_ptr());
        // The governor's other descriptors are closed, so that readers of a job's output see the end of it.
        libc::dup2(watched, 0);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        // A governor killed before this point has closed its end already; one whose fork we outlived as well.
    }
    // SAFETY: the mapping was inherited and stays for the life of this process.
    let table = unsafe { table.as_ref() };
    let mut beat = table.beat.load(Ordering::Acquire);
    let mut silent = Duration::ZERO;
    loop {
        let mut fds = [libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 }];
        // SAFETY: one descriptor, in an array of one.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 1, LOOK.as_millis() as libc::c_int) };
        if ready > 0 {
            outlive(table);
        }
        let now = table.beat.load(Ordering::Acquire);
        silent = if now == beat { silent + LOOK } else { Duration::ZERO };
        beat = now;
        if silent >= LAPSE {
            table.undo(false);
            silent = Duration::ZERO;
        }
    }
}

/// The governor is gone: everything is undone, and its groups go when their jobs have ended.
fn outlive(table: &Table) -> ! {
    table.undo(true);
    let mut wait = LOOK;
    while table.sweep()[1] > 0 {
        // SAFETY: waits; no descriptor is looked at.
        unsafe { libc::poll(null_mut(), 0, wait.as_millis() as libc::c_int) };
        wait = (wait + LOOK).min(LAPSE);
    }
    // SAFETY: ends this process without running anything of the governor's.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
pub(crate) fn alone() -> Guardian {
    let place = tempfile::tempdir().expect("a directory");
    Guardian::start(place.path()).expect("guardians").0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PATH_BYTES;
    use std::process::{Child, Command};
    use vellum_kernel::started_ticks;

    fn state(pid: i32) -> u8 {
        Pid(pid).stat().map_or(b'-', |stat| stat.state)
    }

    fn stopped_sleeper(guardian: &Guardian) -> Child {
        let child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(guardian.table().will_stop(Pid(pid), started_ticks(pid).unwrap()));
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        until(|| state(pid) == b'T');
        child
    }

    fn until(done: impl Fn() -> bool) {
        let began = std::time::Instant::now();
        while !done() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not happen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_was_stopped_and_changed_is_undone_when_the_pipe_closes() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("limit");
        std::fs::write(&file, "7").unwrap();
        let guardian = alone();
        let mut child = stopped_sleeper(&guardian);
        assert!(guardian.table().will_change(&file, "max"));
        let pid = child.id() as i32;
        // As if the governor died: its end closes, and nothing else of it happens.
        // SAFETY: the descriptor is closed once: the value that owns it is forgotten.
        unsafe { libc::close(guardian.alive.as_raw_fd()) };
        until(|| state(pid) != b'T');
        until(|| std::fs::read_to_string(&file).unwrap() == "max");
        until(|| !guardian.is_alive());
        std::mem::forget(guardian);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_pids_next_owner_is_left_alone() {
        let guardian = alone();
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(guardian.table().will_stop(Pid(pid), started_ticks(pid).unwrap() + 1));
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        until(|| state(pid) == b'T');
        guardian.table().undo(false);
        assert_eq!(state(pid), b'T');
        guardian.table().continued(Pid(pid));
        assert_eq!(guardian.table().undo(false), Recovered::default(), "its entry is gone");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let guardian = alone();
        assert!(!guardian.table().will_change(Path::new(&"x".repeat(PATH_BYTES)), "max"));
        let file = Path::new("/nowhere/at/all");
        assert!(guardian.table().will_change(file, "1") && guardian.table().will_change(file, "2"));
        assert_eq!(guardian.table().was(file).as_deref(), Some("1"), "what it was at first counts");
        guardian.table().changed_back(file);
        assert_eq!(guardian.table().was(file), None);
    }

    #[test]
    fn what_nobody_was_left_to_undo_is_undone_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let (file, group) = (place.path().join("limit"), place.path().join("group"));
        std::fs::write(&file, "7").unwrap();
        let (guardian, found) = Guardian::start(place.path()).unwrap();
        assert_eq!(found, Recovered::default());
        let mut child = stopped_sleeper(&guardian);
        assert!(guardian.table().will_change(&file, "max") && guardian.table().will_make(&group));
        std::fs::create_dir(&group).unwrap();
        std::fs::write(group.join("busy"), "").unwrap();
        // As if all three were killed.
        guardian.end();
        std::mem::forget(guardian);
        let found = Record::undo(place.path()).unwrap().unwrap();
        assert_eq!(found, Recovered { processes: 1, files: 1, groups: 0, groups_left: 1 });
        until(|| state(child.id() as i32) != b'T');
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "max");
        std::fs::remove_file(group.join("busy")).unwrap();
        let (guardian, found) = Guardian::start(place.path()).unwrap();
        assert_eq!(found, Recovered { groups: 1, ..Recovered::default() });
        drop(guardian);
        assert!(!group.exists() && Record::undo(place.path()).unwrap().is_none(), "nothing is left");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_file_that_is_no_record_of_this_boot_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(Record::file(place.path()), "something else").unwrap();
        assert!(Record::undo(place.path()).unwrap().is_none());
        let (guardian, found) = Guardian::start(place.path()).unwrap();
        assert!(guardian.is_alive() && !found.is_something());
    }
}
