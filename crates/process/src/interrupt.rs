//! Handles the signals that request the end of a long measurement: SIGINT, SIGTERM and SIGHUP.
//!
//! A measuring loop checks between two runs whether a signal has [arrived](Interrupt::arrived). The loop
//! then ends with the results so far, and the command exits with the status that shells use for that
//! signal. The handler also sends the signal to the measured process at once, because `kill` reaches only
//! this process. (Ctrl-C on a terminal reaches both.)
//!
//! Invariant: the handler calls only `kill`, and only for a child that has not been waited for.

use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

pub(crate) const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The first that came; 0 if none did.
static ARRIVED: AtomicI32 = AtomicI32::new(0);
/// The signal that had arrived when the last [`Interrupt`] was dropped; 0 if none had.
static LAST: AtomicI32 = AtomicI32::new(0);
/// The processes that are being measured, of which there may be two at once; 0 where none is.
static CHILDREN: [AtomicI32; 2] = [const { AtomicI32::new(0) }; 2];

extern "C" fn arrive(signal: libc::c_int) {
    let _ = ARRIVED.compare_exchange(0, signal, SeqCst, SeqCst);
    for child in &CHILDREN {
        let child = child.load(SeqCst);
        if child > 0 {
            // SAFETY: the call touches no memory and may be made in a handler.
            unsafe { libc::kill(child, signal) };
        }
    }
}

/// While there is one, those signals do not end this process. There is one at a time.
#[derive(Debug)]
pub struct Interrupt {
    before: [libc::sigaction; SIGNALS.len()],
}

impl Interrupt {
    /// Begins to catch them. A signal that was ignored (as under `nohup`) stays ignored.
    pub fn catch() -> io::Result<Interrupt> {
        ARRIVED.store(0, SeqCst);
        LAST.store(0, SeqCst);
        // SAFETY: all zeros is a valid sigaction: the default, without flags.
        let mut before: [libc::sigaction; SIGNALS.len()] = unsafe { MaybeUninit::zeroed().assume_init() };
        for (signal, before) in SIGNALS.into_iter().zip(&mut before) {
            // SAFETY: a zeroed sigaction is valid; the calls only write to `before`, which lives across them.
            unsafe {
                if libc::sigaction(signal, null_mut(), before) != 0 {
                    return Err(io::Error::last_os_error());
                }
                if before.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                // Without SA_RESTART, so that a wait for a child returns.
                let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
                action.sa_sigaction = arrive as extern "C" fn(libc::c_int) as usize;
                libc::sigemptyset(&mut action.sa_mask);
                if libc::sigaction(signal, &action, null_mut()) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(Interrupt { before })
    }

    /// The first signal that arrived, if any.
    pub fn arrived() -> Option<libc::c_int> {
        Some(ARRIVED.load(SeqCst)).filter(|signal| *signal != 0)
    }

    /// The signal that had arrived when the last one of these was dropped: for the exit status of a command
    /// whose callee did the catching.
    pub fn last() -> Option<libc::c_int> {
        Some(LAST.load(SeqCst)).filter(|signal| *signal != 0)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for (signal, before) in SIGNALS.iter().zip(&self.before) {
            // SAFETY: `before` is the action that `sigaction` returned in `catch`, so it is valid.
            unsafe { libc::sigaction(*signal, before, null_mut()) };
        }
        LAST.store(ARRIVED.swap(0, SeqCst), SeqCst);
    }
}

/// While this lives, signals are passed on to the process that it names. There are two at a time.
#[derive(Debug)]
pub struct Told(libc::pid_t);

impl Told {
    /// Passes signals on to `child`, including a signal that has already arrived.
    pub fn of(child: libc::pid_t) -> Told {
        // A third process gets no signals; nothing measures three at once.
        let free = |place: &AtomicI32| place.compare_exchange(0, child, SeqCst, SeqCst).is_ok();
        let _ = CHILDREN.iter().any(free);
        if let Some(signal) = Interrupt::arrived() {
            // It came between the child's start and now.
            // SAFETY: the call touches no memory.
            unsafe { libc::kill(child, signal) };
        }
        Told(child)
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        for place in &CHILDREN {
            let _ = place.compare_exchange(self.0, 0, SeqCst, SeqCst);
        }
    }
}
