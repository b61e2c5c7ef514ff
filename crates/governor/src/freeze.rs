//! Suspends all processes of a job together, and resumes them.
//!
//! The kernel freezes a whole cgroup of version 2 at once. Without such a cgroup, every process is stopped
//! by `SIGSTOP`. A process may fork while others are being stopped, so the job is scanned again and again
//! until none of its processes runs.
//!
//! Processes that were already stopped are neither stopped again nor continued.
//!
//! Invariant: each process is in the guardians' record (of changes to undo) before it is stopped, and each
//! cgroup before it is frozen.

use crate::guardian::Guardian;
use crate::members::{Census, Members, Roots};
use std::io;
use std::path::{Path, PathBuf};
use vellum_kernel::{Cgroup, Control, Pid};

const ROUNDS_MAX: u32 = 16;

/// A job could not be suspended. It runs.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum FreezeError {
    /// There is no guardian to resume it if the governor is killed.
    #[error(
        "a helper that resumes suspended jobs has ended: no job is suspended until the governor has started another"
    )]
    NoGuardian,
    /// More processes than the guardian's table holds.
    #[error("it has more processes than can be resumed for certain ({} in all)", crate::record::STOPPED_MAX)]
    NoRoom,
    /// A process is not ours to stop.
    #[error("process {pid} cannot be stopped ({source}): only its owner or root may")]
    Refused { pid: Pid, source: io::Error },
    /// A control group could not be frozen.
    #[error("{}: cannot be frozen: {source}", .path.display())]
    Group { path: PathBuf, source: io::Error },
    /// The job forks faster than it can be stopped.
    #[error("the job starts processes faster than they can be suspended, and was left running")]
    Forks,
}

#[derive(Debug, Default)]
pub(crate) struct Freezer {
    stopped: Members,
    group: Option<PathBuf>,
}

impl Freezer {
    /// Suspends the job, or those of its processes that run again. Returns whether anything had to be done.
    pub(crate) fn suspend(
        &mut self,
        roots: Roots<'_>,
        known: &mut Members,
        guardian: &Guardian,
    ) -> Result<bool, FreezeError> {
        if !guardian.is_alive() {
            return Err(FreezeError::NoGuardian);
        }
        if let Roots::Group(path) = roots
            && let file = Cgroup::at(path).control(Control::Freeze)
            && file.is_file()
        {
            return self.freeze_group(&file, guardian);
        }
        // Once the signal is sent a process forks no more, also while it waits for a turn to stop.
        let mut sent = Members::default();
        for _ in 0..ROUNDS_MAX {
            let census = Census::take(guardian.pids());
            *known = census.members(roots, known);
            let mut more = false;
            for (pid, started) in &*known {
                let runs = census
                    .stat(*pid)
                    .is_some_and(|stat| !matches!(stat.state, b'T' | b't') && !stat.is_zombie());
                if runs && sent.insert(*pid, *started) != Some(*started) {
                    more |= self.stop(*pid, *started, guardian).inspect_err(|_| self.resume(guardian))?;
                }
            }
            if !more {
                return Ok(!sent.is_empty());
            }
        }
        self.resume(guardian);
        Err(FreezeError::Forks)
    }

    pub(crate) fn resume(&mut self, guardian: &Guardian) {
        for (pid, started) in std::mem::take(&mut self.stopped) {
            let _ = signal(pid, started, libc::SIGCONT);
            guardian.table().continued(pid);
        }
        if let Some(path) = self.group.take() {
            // A group that is gone has no processes.
            let _ = std::fs::write(&path, "0");
            guardian.table().changed_back(&path);
        }
    }

    /// Stops a process; `false` if it has ended. The entry of a process that dies is removed at the next
    /// resume.
    fn stop(&mut self, pid: Pid, started: u64, guardian: &Guardian) -> Result<bool, FreezeError> {
        if self.stopped.get(&pid) != Some(&started) && !guardian.table().will_stop(pid, started) {
            return Err(FreezeError::NoRoom);
        }
        self.stopped.insert(pid, started);
        match signal(pid, started, libc::SIGSTOP) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(source) => Err(FreezeError::Refused { pid, source }),
        }
    }

    fn freeze_group(&mut self, path: &Path, guardian: &Guardian) -> Result<bool, FreezeError> {
        if self.group.is_some() {
            return Ok(false);
        }
        if !guardian.table().will_change(path, "0") {
            return Err(FreezeError::NoRoom);
        }
        self.group = Some(path.to_path_buf());
        let frozen = std::fs::write(path, "1");
        frozen.map(|()| true).map_err(|source| {
            self.resume(guardian);
            FreezeError::Group { path: path.to_path_buf(), source }
        })
    }
}

/// Sends `signal` to the process `pid` that was born at `started`, and to no other.
pub(crate) fn signal(pid: Pid, started: u64, signal: libc::c_int) -> io::Result<()> {
    let process = vellum_sys::remote::open(pid.0)?;
    if pid.stat().is_none_or(|stat| stat.started_ticks != started) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let number = rustix::process::Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_send_signal(&process, number)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    fn states(members: &Members) -> Vec<u8> {
        let census = Census::take([Pid(0); 2]);
        members.keys().filter_map(|pid| census.stat(*pid)).map(|stat| stat.state).collect()
    }

    fn end(mut child: Child, members: &Members) {
        for pid in members.keys() {
            // SAFETY: signals to processes this test has started.
            unsafe { libc::kill(pid.0, libc::SIGKILL) };
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_job_that_keeps_forking_is_stopped_whole_and_goes_on() {
        let guardian = crate::guardian::alone();
        let script = "while :; do sleep 0.01; sleep 0.3 & sleep 0.001 & done";
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let root = Pid(child.id() as i32);
        let mut known = Census::take(guardian.pids()).adopt(root);
        let mut freezer = Freezer::default();
        std::thread::sleep(Duration::from_millis(100));
        assert!(freezer.suspend(Roots::Process, &mut known, &guardian).unwrap());
        let began = Instant::now();
        while !states(&known).iter().all(|state| b"TZX".contains(state)) {
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", states(&known).escape_ascii());
        }
        let before = Census::take(guardian.pids()).members(Roots::Process, &known);
        std::thread::sleep(Duration::from_millis(50));
        let after = Census::take(guardian.pids()).members(Roots::Process, &known);
        assert_eq!(before, after, "nothing was forked meanwhile");
        assert!(!freezer.suspend(Roots::Process, &mut known, &guardian).unwrap(), "nothing was left to do");
        freezer.resume(&guardian);
        assert!(freezer.stopped.is_empty());
        let began = Instant::now();
        while states(&known).contains(&b'T') {
            assert!(began.elapsed() < Duration::from_secs(30), "it does not go on");
        }
        let members = Census::take(guardian.pids()).members(Roots::Process, &known);
        end(child, &members);
    }

    #[test]
    fn what_others_have_stopped_stays_stopped() {
        let guardian = crate::guardian::alone();
        let child = Command::new("sleep").arg("100").spawn().unwrap();
        let root = Pid(child.id() as i32);
        let mut known = Census::take(guardian.pids()).adopt(root);
        signal(root, known[&root], libc::SIGSTOP).unwrap();
        let began = Instant::now();
        while states(&known) != *b"T" {
            assert!(began.elapsed() < Duration::from_secs(30), "it does not stop");
        }
        let mut freezer = Freezer::default();
        assert!(!freezer.suspend(Roots::Process, &mut known, &guardian).unwrap());
        freezer.resume(&guardian);
        assert_eq!(states(&known), *b"T");
        end(child, &known);
    }

    #[test]
    fn a_pids_next_owner_gets_no_signal() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let error = signal(Pid(child.id() as i32), 1, libc::SIGKILL).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
