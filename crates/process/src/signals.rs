//! Receives the signals that arrive at this process while it runs a program, and passes them on if needed.
//!
//! The signals are blocked and read from a descriptor, not caught. No handler runs, no disposition changes (a
//! child would inherit it), and no signal is lost. The action depends on the sender:
//!
//! | sender | action |
//! | --- | --- |
//! | the terminal (`SI_KERNEL`: Ctrl-C, Ctrl-\, Ctrl-Z, hang-up, resize) | none: the kernel sent it to the whole foreground group, so the child has it already |
//! | a process (`kill`), except the child itself | the signal is passed on to the child, with its value if it has one |
//! | the kernel (`SIGCHLD`) | the states of the children are read |
//!
//! The receiver cannot distinguish a signal to one process from a signal to the whole group. If a user or a
//! supervisor signals the group (`kill -- -PGID`), the child gets the signal twice. Standard signals that
//! arrive close together merge into one.
//!
//! Invariant: the signal mask that we were started with is stored, set for each child and, on drop, restored
//! for ourselves.

use crate::{Pid, inherited, interrupt};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Blocking the signals or opening the descriptor failed.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot take over signals ({call}: {source}); is this kernel older than 2.6.27, or the call filtered?"
)]
pub struct SignalError {
    call: &'static str,
    source: io::Error,
}

/// Never taken over: they cannot be blocked, are raised by a fault of our own, or mean us alone.
const OURS: &[libc::c_int] = &[
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGSYS,
    libc::SIGPIPE,
    libc::SIGXCPU,
    libc::SIGXFSZ,
];

/// All signals but a few, held back and readable.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

pub(crate) struct Arrived(libc::signalfd_siginfo);

impl Signals {
    /// Holds back signals from now on. To be called while this process has one thread: others made later
    /// inherit it.
    pub fn block() -> Result<Signals, SignalError> {
        inherited::make_children_waitable();
        let failed = |call| SignalError { call, source: io::Error::last_os_error() };
        // SAFETY: a sigset_t is plain data; sigfillset initialises it before use.
        let mut set: libc::sigset_t = unsafe { MaybeUninit::zeroed().assume_init() };
        let mut before = set;
        // SAFETY: `set` and `before` live across the calls, which only read and write them.
        unsafe {
            libc::sigfillset(&mut set);
            for &signal in OURS {
                libc::sigdelset(&mut set, signal);
            }
            if libc::pthread_sigmask(libc::SIG_SETMASK, &set, &mut before) != 0 {
                return Err(failed("pthread_sigmask"));
            }
        }
        // SAFETY: `set` is initialised and only read.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            let error = failed("signalfd");
            // SAFETY: puts back the mask just read.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
            return Err(error);
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Signals { fd: unsafe { OwnedFd::from_raw_fd(fd) }, before })
    }

    /// Gives the calling thread, a just forked child, the mask this process was started with.
    /// Async-signal-safe.
    pub(crate) fn restore_mask(&self) {
        // SAFETY: `before` was filled by pthread_sigmask and is only read.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }

    pub(crate) fn next(&self) -> Option<Arrived> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: at most `size` bytes are written into `info`, which has that size.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        // SAFETY: zeroed at first and overwritten by whole records only; any bit pattern is valid.
        (read == size as isize).then(|| Arrived(unsafe { info.assume_init() }))
    }

    /// Stops this process by `signal`, as the terminal would have, until it is continued.
    pub(crate) fn stop_self(&self, signal: libc::c_int) {
        // SAFETY: a zeroed sigset_t is initialised by sigemptyset; the sets live across the calls; raising a
        // stop signal runs no code of ours.
        unsafe {
            let mut only: libc::sigset_t = MaybeUninit::zeroed().assume_init();
            libc::sigemptyset(&mut only);
            libc::sigaddset(&mut only, signal);
            libc::kill(libc::getpid(), signal);
            // The signal is delivered, and this process stops, inside this call.
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
            libc::pthread_sigmask(libc::SIG_BLOCK, &only, std::ptr::null_mut());
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Signals until now were for the job, which has ended. They must not end this process.
        while self.next().is_some() {}
        self.restore_mask();
    }
}

impl Arrived {
    pub(crate) fn is_child(&self) -> bool {
        self.0.ssi_signo as libc::c_int == libc::SIGCHLD
    }

    /// Its number, if it ends processes and does not come from `child`.
    pub(crate) fn asks_to_end(&self, child: Pid) -> Option<libc::c_int> {
        let signal = self.0.ssi_signo as libc::c_int;
        let by_child = self.0.ssi_code <= 0 && self.0.ssi_pid as i32 == child.0;
        (interrupt::SIGNALS.contains(&signal) && !by_child).then_some(signal)
    }

    /// Passes the signal on to `child` if it was sent to us by a process other than it.
    pub(crate) fn pass_on(&self, child: Pid) {
        let (signal, code) = (self.0.ssi_signo as libc::c_int, self.0.ssi_code);
        if code > 0 || self.0.ssi_pid as i32 == child.0 {
            return;
        }
        // SAFETY: sends a signal to a child that has not been waited for yet, so the pid is its own; failing
        // is harmless (the child is just ending).
        unsafe {
            if code == libc::SI_QUEUE {
                let value = libc::sigval { sival_ptr: self.0.ssi_ptr as *mut libc::c_void };
                libc::sigqueue(child.0, signal, value);
            } else {
                libc::kill(child.0, signal);
            }
        }
    }
}
