//! The guardian: a small process that undoes what the governor has done, when the governor cannot.
//!
//! A governor that is killed, crashes or hangs must leave nothing frozen. So each change is recorded,
//! *before* it is made, in memory that the governor shares with a child of its own. That child only waits:
//!
//! ```text
//! governor ─ write: processes stopped, files changed ─▶ ┌───────┐
//!     │                                                 │ Table │ ◀─ read ─ guardian
//!     ├─ beat, each step ─────────────────────────────▶ └───────┘             │
//!     └─ the end of a pipe, which closes when the governor is gone ──────────▶ poll
//!
//! pipe closed:                       undo everything at once, and end
//! no beat for LAPSE:                 undo everything, and go on waiting
//! ```
//!
//! Invariants: an entry is complete before it can be seen (its pid, or its state, is written last). Undoing
//! twice does no harm, nor does undoing a change not yet made. A process is continued only if its time of
//! birth is the entry's. The guardian allocates nothing and calls async-signal-safe functions only, so it can
//! be forked by a process of many threads.
//!
//! It has a session of its own and blocks all signals but SIGKILL, so that a signal to the governor's group
//! does not end it first. If both are killed, jobs stay frozen.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use vellum_process::Pid;

/// The longest time that a job stays frozen under a governor that does nothing any more.
pub const LAPSE: Duration = Duration::from_secs(5);
/// How often the guardian looks for a beat.
const LOOK: Duration = Duration::from_millis(500);
/// The most processes that can be stopped at once.
pub const STOPPED_MAX: usize = 16_384;
/// The most files that can be changed at once.
pub const FILES_MAX: usize = 512;
/// The longest path of a file to put back, and the longest content.
const PATH_BYTES: usize = 512;
const CONTENT_BYTES: usize = 32;

/// The guardian could not be had.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot start the guardian, without which no job is ever suspended ({call}: {source}); check the limits on processes and open files (ulimit -a)"
)]
pub struct GuardianError {
    call: &'static str,
    source: io::Error,
}

/// A stopped process. Free while `pid` is 0.
#[repr(C)]
struct Stopped {
    pid: AtomicI32,
    started: AtomicU64,
}

/// A changed file. Free while `set` is 0.
#[repr(C)]
struct Changed {
    set: AtomicU32,
    path: [AtomicU8; PATH_BYTES],
    content: [AtomicU8; CONTENT_BYTES],
}

/// The shared table; zeroed memory is an empty one.
#[repr(C)]
struct Table {
    beat: AtomicU64,
    /// How often everything was undone.
    undone: AtomicU64,
    stopped: [Stopped; STOPPED_MAX],
    files: [Changed; FILES_MAX],
}

/// The governor's end.
#[derive(Debug)]
pub(crate) struct Guardian {
    table: NonNull<Table>,
    pid: libc::pid_t,
    /// Closed when this process ends, however it does.
    _alive: OwnedFd,
    seen_undone: u64,
}

// SAFETY: the table is atomics in memory that belongs to this value until it is dropped.
unsafe impl Send for Guardian {}

impl Guardian {
    /// Starts a guardian with nothing to undo.
    pub(crate) fn start() -> Result<Guardian, GuardianError> {
        let failed = |call| GuardianError { call, source: io::Error::last_os_error() };
        let bytes = size_of::<Table>();
        // SAFETY: a new shared mapping wherever the kernel likes; nothing else is touched.
        let memory = unsafe {
            libc::mmap(
                null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let table = match NonNull::new(memory.cast::<Table>()) {
            Some(table) if memory != libc::MAP_FAILED => table,
            _ => return Err(failed("mmap")),
        };
        let mut ends = [0; 2];
        // SAFETY: two descriptors are written to `ends`.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            let error = failed("pipe2");
            // SAFETY: the mapping made above, which nobody uses.
            unsafe { libc::munmap(memory, bytes) };
            return Err(error);
        }
        // SAFETY: both descriptors were just made and belong to nobody else.
        let [watched, alive] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        // SAFETY: the child calls async-signal-safe functions only, on memory made before, and ends in _exit.
        let pid = unsafe { libc::fork() };
        match pid {
            0 => guard(table, watched.as_raw_fd()),
            1.. => Ok(Guardian { table, pid, _alive: alive, seen_undone: 0 }),
            _ => {
                let error = failed("fork");
                // SAFETY: the mapping made above: the fork failed, so no other process or value uses it.
                unsafe { libc::munmap(memory, bytes) };
                Err(error)
            }
        }
    }

    fn table(&self) -> &Table {
        // SAFETY: the mapping lives as long as this value; any bytes are valid atomics.
        unsafe { self.table.as_ref() }
    }

    /// Reports that the governor lives. Returns whether everything was undone since the last call: then no
    /// job is suspended any more.
    pub(crate) fn beat(&mut self) -> bool {
        self.table().beat.fetch_add(1, Ordering::Release);
        let undone = self.table().undone.load(Ordering::Acquire);
        std::mem::replace(&mut self.seen_undone, undone) != undone
    }

    /// Whether the guardian lives. Without one nothing may be suspended.
    pub(crate) fn is_alive(&self) -> bool {
        // SAFETY: waits for our own child, without blocking; nothing is written.
        unsafe { libc::waitpid(self.pid, null_mut(), libc::WNOHANG) == 0 }
    }

    /// The guardian's own process.
    pub(crate) fn pid(&self) -> Pid {
        Pid(self.pid)
    }

    /// Records that a process born at `started` is about to be stopped. False if there is no room: then it
    /// must not be.
    #[must_use]
    pub(crate) fn will_stop(&self, pid: Pid, started: u64) -> bool {
        let free = self.table().stopped.iter().find(|entry| entry.pid.load(Ordering::Relaxed) == 0);
        free.is_some_and(|entry| {
            entry.started.store(started, Ordering::Relaxed);
            entry.pid.store(pid.0, Ordering::Release);
            true
        })
    }

    /// The process was continued, or has ended.
    pub(crate) fn continued(&self, pid: Pid) {
        for entry in self.table().stopped.iter().filter(|entry| entry.pid.load(Ordering::Relaxed) == pid.0) {
            entry.pid.store(0, Ordering::Release);
        }
    }

    /// Records that `path` is about to be changed and was `content`. False if there is no room: then it must
    /// not be.
    #[must_use]
    pub(crate) fn will_change(&self, path: &Path, content: &str) -> bool {
        let path = path.as_os_str().as_encoded_bytes();
        if path.len() >= PATH_BYTES || content.len() >= CONTENT_BYTES {
            return false;
        }
        if self.entries(path).next().is_some() {
            return true;
        }
        let free = self.table().files.iter().find(|entry| entry.set.load(Ordering::Relaxed) == 0);
        free.is_some_and(|entry| {
            store(&entry.path, path);
            store(&entry.content, content.as_bytes());
            entry.set.store(1, Ordering::Release);
            true
        })
    }

    /// The recorded state of `path`.
    pub(crate) fn was(&self, path: &Path) -> Option<String> {
        let entry = self.entries(path.as_os_str().as_encoded_bytes()).next()?;
        let bytes = entry.content.iter().map(|byte| byte.load(Ordering::Relaxed));
        Some(bytes.take_while(|byte| *byte != 0).map(char::from).collect())
    }

    /// The file was put back.
    pub(crate) fn changed_back(&self, path: &Path) {
        if let Some(entry) = self.entries(path.as_os_str().as_encoded_bytes()).next() {
            entry.set.store(0, Ordering::Release);
        }
    }

    fn entries<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = &'a Changed> {
        self.table()
            .files
            .iter()
            .filter(move |entry| entry.set.load(Ordering::Relaxed) != 0 && is(&entry.path, path))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // SAFETY: our own child, which has been waited for by nobody but `is_alive`; a pid that is gone is
        // refused. Then our own mapping, which nobody uses any more. The records left have been undone by the
        // governor.
        unsafe {
            if self.is_alive() {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, null_mut(), 0);
            }
            libc::munmap(self.table.as_ptr().cast(), size_of::<Table>());
        }
    }
}

fn store(to: &[AtomicU8], bytes: &[u8]) {
    for (at, byte) in to.iter().enumerate() {
        byte_at(bytes, at, byte);
    }
}

fn byte_at(bytes: &[u8], at: usize, to: &AtomicU8) {
    to.store(bytes.get(at).copied().unwrap_or(0), Ordering::Relaxed);
}

fn is(stored: &[AtomicU8], bytes: &[u8]) -> bool {
    stored
        .iter()
        .enumerate()
        .all(|(at, byte)| byte.load(Ordering::Relaxed) == bytes.get(at).copied().unwrap_or(0))
}

/// The guardian's life.
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
            undo(table);
            // SAFETY: ends this process without running anything of the governor's.
            unsafe { libc::_exit(0) };
        }
        let now = table.beat.load(Ordering::Acquire);
        silent = if now == beat { silent + LOOK } else { Duration::ZERO };
        beat = now;
        if silent >= LAPSE {
            undo(table);
            silent = Duration::ZERO;
        }
    }
}

/// Continues every process and puts back every file.
fn undo(table: &Table) {
    let mut any = false;
    for entry in &table.stopped {
        let pid = entry.pid.load(Ordering::Acquire);
        if pid > 0 && born(pid) == Some(entry.started.load(Ordering::Relaxed)) {
            any = true;
            // SAFETY: a signal to a process that was stopped by the governor, whose birth was just compared.
            unsafe { libc::kill(pid, libc::SIGCONT) };
        }
    }
    for entry in &table.files {
        if entry.set.load(Ordering::Acquire) != 0 {
            any = true;
            put_back(entry);
        }
    }
    if any {
        table.undone.fetch_add(1, Ordering::Release);
    }
}

fn put_back(entry: &Changed) {
    let mut path = [0u8; PATH_BYTES];
    path.iter_mut().zip(&entry.path).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
    let mut content = [0u8; CONTENT_BYTES];
    content.iter_mut().zip(&entry.content).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
    let long = content.iter().position(|byte| *byte == 0).unwrap_or(CONTENT_BYTES);
    // SAFETY: the path ends in a zero, since shorter ones only are stored; `long` bytes of the content are
    // read.
    unsafe {
        let fd = libc::open(path.as_ptr().cast(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd >= 0 {
            libc::write(fd, content.as_ptr().cast(), long);
            libc::close(fd);
        }
    }
}

/// When `pid` was born, in clock ticks: the twentieth field after the name in its `stat`. Allocates nothing.
fn born(pid: libc::pid_t) -> Option<u64> {
    let mut path = *b"/proc/\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0u8; 10];
    let (mut rest, mut count) = (pid, 0);
    while rest > 0 {
        digits[count] = b'0' + (rest % 10) as u8;
        (rest, count) = (rest / 10, count + 1);
    }
    for (at, digit) in digits[..count].iter().rev().chain(b"/stat").enumerate() {
        path[6 + at] = *digit;
    }
    let mut text = [0u8; 1024];
    // SAFETY: the path ends in a zero (six, ten and five bytes of twenty-two); at most `text` is written.
    let read = unsafe {
        let fd = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let read = libc::read(fd, text.as_mut_ptr().cast(), text.len());
        libc::close(fd);
        read
    };
    let text = text.get(..usize::try_from(read).ok()?)?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let field = text.get(close + 2..)?.split(|byte| *byte == b' ').nth(19)?;
    field.iter().try_fold(0u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

const _: () = assert!(align_of::<Table>() <= 4096);

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn state(pid: i32) -> u8 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        text.rsplit(") ").next().and_then(|rest| rest.bytes().next()).unwrap_or(b'-')
    }

    fn stopped_sleeper(guardian: &Guardian) -> Child {
        let child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(guardian.will_stop(Pid(pid), born(pid).unwrap()));
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
    fn births_are_read_without_allocating() {
        let own = vellum_process::Stat::parse(&std::fs::read("/proc/self/stat").unwrap()).unwrap();
        assert_eq!(born(std::process::id() as i32), Some(own.started_ticks));
        assert_eq!(born(i32::MAX), None);
    }

    #[test]
    fn what_was_stopped_and_changed_is_undone_when_the_pipe_closes() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("limit");
        std::fs::write(&file, "7").unwrap();
        let guardian = Guardian::start().unwrap();
        let mut child = stopped_sleeper(&guardian);
        assert!(guardian.will_change(&file, "max"));
        let pid = child.id() as i32;
        // As if the governor died: its end closes, and nothing else of it happens.
        // SAFETY: the descriptor is closed once: the value that owns it is forgotten.
        unsafe { libc::close(guardian._alive.as_raw_fd()) };
        until(|| state(pid) != b'T');
        until(|| std::fs::read_to_string(&file).unwrap() == "max");
        until(|| !guardian.is_alive());
        std::mem::forget(guardian);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_governor_that_hangs_is_noticed_and_told_when_it_comes_back() {
        let mut guardian = Guardian::start().unwrap();
        assert!(!guardian.beat());
        let mut child = stopped_sleeper(&guardian);
        let pid = child.id() as i32;
        until(|| state(pid) != b'T');
        until(|| guardian.table().undone.load(Ordering::Acquire) > 0);
        assert!(guardian.beat() && !guardian.beat() && guardian.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_pids_next_owner_is_left_alone() {
        let guardian = Guardian::start().unwrap();
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(guardian.will_stop(Pid(pid), born(pid).unwrap() + 1));
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        until(|| state(pid) == b'T');
        undo(guardian.table());
        assert_eq!(state(pid), b'T');
        guardian.continued(Pid(pid));
        assert_eq!(guardian.table().stopped[0].pid.load(Ordering::Relaxed), 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let guardian = Guardian::start().unwrap();
        assert!(!guardian.will_change(Path::new(&"x".repeat(PATH_BYTES)), "max"));
        let file = Path::new("/nowhere/at/all");
        assert!(guardian.will_change(file, "1") && guardian.will_change(file, "2"));
        assert_eq!(guardian.entries(b"/nowhere/at/all").count(), 1, "what it was at first counts");
        guardian.changed_back(file);
        assert_eq!(guardian.entries(b"/nowhere/at/all").count(), 0);
    }
}
