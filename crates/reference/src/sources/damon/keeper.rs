//! Removes the monitor when its owner is gone, however it ended.
//!
//! A monitor lives in the kernel until somebody removes it. Its owner may be killed, and any signal ends a
//! watch. A small child process waits for that, and removes the monitor:
//!
//! ```text
//! owner ─ one end of a pipe ──▶ keeper: end of file ─▶ monitor off ─▶ no monitors ─▶ lock let go
//! ```
//!
//! Invariants: only the monitor that was made is removed; its files are held open, and the kernel refuses
//! them (`ENODEV`) once it is another's. The lock on the number of monitors, by which one `vellum` keeps
//! others out, is held until the removal is complete. The keeper allocates nothing and calls
//! async-signal-safe functions only, so that a process of many threads can fork it.

use super::monitor::{BETWEEN, TRIES};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The keeper's descriptors are first moved to this number and above, out of the way of their final ones.
const ABOVE: RawFd = 64;

/// The owner's end.
#[derive(Debug)]
pub(super) struct Keeper {
    pid: libc::pid_t,
    /// Closed when the owner ends, however it does.
    alive: Option<OwnedFd>,
}

impl Keeper {
    /// A keeper that will write `off` to `state`, and 0 to `number`, which is locked.
    pub(super) fn start(state: &File, number: &File) -> io::Result<Keeper> {
        let mut ends = [0; 2];
        // SAFETY: two descriptors are written to `ends`.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors were just made and belong to nobody else.
        let [watched, alive] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        // SAFETY: the child calls async-signal-safe functions only and ends in _exit.
        let pid = unsafe { libc::fork() };
        match pid {
            0 => keep(watched.as_raw_fd(), state.as_raw_fd(), number.as_raw_fd()),
            1.. => Ok(Keeper { pid, alive: Some(alive) }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.alive = None;
        // SAFETY: waits for our own child; nothing is written.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// The keeper's life.
fn keep(watched: RawFd, state: RawFd, number: RawFd) -> ! {
    // SAFETY: system calls of the forked child, on itself and its own descriptors. Their pointers are to
    // locals and constants that live across the calls, and each length fits.
    unsafe {
        libc::setsid();
        let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, c"vellum-keeper".as_ptr());
        // The owner's other descriptors are closed, so that readers of its output see the end of it.
        let moved = [watched, state, number].map(|descriptor| libc::fcntl(descriptor, libc::F_DUPFD, ABOVE));
        for (to, from) in moved.into_iter().enumerate() {
            libc::dup2(from, to as RawFd);
        }
        libc::syscall(libc::SYS_close_range, moved.len(), u32::MAX, 0);
        let mut byte = 0u8;
        while libc::read(0, (&raw mut byte).cast(), 1) < 0 && *libc::__errno_location() == libc::EINTR {}
        // Refused if the monitor does not run, which is as good, and while a sum is being made; gone if it is
        // no longer ours.
        let pause = libc::timespec { tv_sec: 0, tv_nsec: BETWEEN.subsec_nanos().into() };
        let mut off = -1;
        for _ in 0..TRIES {
            off = libc::pwrite(1, c"off".as_ptr().cast(), 3, 0);
            if off >= 0 || *libc::__errno_location() != libc::EBUSY {
                break;
            }
            libc::nanosleep(&raw const pause, std::ptr::null_mut());
        }
        if off >= 0 || *libc::__errno_location() != libc::ENODEV {
            libc::pwrite(2, c"0".as_ptr().cast(), 1, 0);
        }
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_undone_when_the_owner_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let make = |name: &str| File::create(path(name)).unwrap();
        let keeper = Keeper::start(&make("state"), &make("number")).unwrap();
        let text = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        assert_eq!((text("state").as_str(), text("number").as_str()), ("", ""));
        drop(keeper);
        assert_eq!((text("state").as_str(), text("number").as_str()), ("off", "0"));
    }
}
