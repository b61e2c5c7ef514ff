//! Sleeps for a given time, or until a stop signal (SIGINT, SIGTERM, SIGHUP, SIGQUIT) arrives.
//!
//! Stop signals are blocked and read from a descriptor. No handler runs, and no signal is lost between two
//! steps of the governor's loop. Jobs still start with an empty signal mask. `SIGTSTP` is not caught, so
//! it suspends the governor. A guardian then acts as for a governor that hangs.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

const ASKING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The signals could not be taken over.
#[derive(Debug, thiserror::Error)]
#[error("cannot take SIGINT, SIGTERM, SIGHUP and SIGQUIT ({call}: {source}); is the call filtered?")]
pub struct StopError {
    call: &'static str,
    source: io::Error,
}

/// The stop signals, blocked and readable.
#[derive(Debug)]
pub struct Stop {
    fd: OwnedFd,
    before: libc::sigset_t,
}

impl Stop {
    /// Holds them back from now on. To be called while this process has one thread: others made later inherit
    /// it.
    pub fn block() -> Result<Stop, StopError> {
        let failed = |call| StopError { call, source: io::Error::last_os_error() };
        // SAFETY: a sigset_t is plain data, initialised by sigemptyset before use; the sets live across the
        // calls.
        let (set, before) = unsafe {
            let mut set: libc::sigset_t = MaybeUninit::zeroed().assume_init();
            let mut before = set;
            libc::sigemptyset(&mut set);
            ASKING.iter().for_each(|signal| {
                libc::sigaddset(&mut set, *signal);
            });
            if libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before) != 0 {
                return Err(failed("pthread_sigmask"));
            }
            (set, before)
        };
        // SAFETY: `set` is initialised and only read.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(failed("signalfd"));
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Stop { fd: unsafe { OwnedFd::from_raw_fd(fd) }, before })
    }

    /// Sleeps for `time`. True if a stop signal has arrived.
    pub fn wait(&self, time: Duration) -> bool {
        self.wait_with(time, None)
    }

    /// The same, but only until one of `others` can be read.
    pub fn wait_with<'a>(&'a self, time: Duration, others: impl IntoIterator<Item = BorrowedFd<'a>>) -> bool {
        let limit = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let others = others.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> =
            std::iter::once(PollFd::new(&self.fd, PollFlags::IN)).chain(others).collect();
        // An interruption ends the sleep a little early, which harms nobody.
        matches!(poll(&mut fds, Some(&limit)), Ok(1..)) && fds[0].revents().contains(PollFlags::IN)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the signal has been received, and must not end us in the middle of leaving; whole records
        // are written into bytes. Then the mask is what it was.
        unsafe {
            while libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) > 0 {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_end_is_heard_and_kills_nobody() {
        let stop = Stop::block().unwrap();
        assert!(!stop.wait(Duration::from_millis(1)));
        // SAFETY: a signal to the calling thread, which blocks it.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGTERM) };
        assert!(stop.wait(Duration::from_secs(60)));
        drop(stop);
    }
}
