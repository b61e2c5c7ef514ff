//! Signals that would end this process, turned into a question.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set by a signal.
static ASKED: AtomicBool = AtomicBool::new(false);
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

extern "C" fn ask(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// While it lives, interrupt, termination and hang-up only ask this process to end.
#[derive(Debug)]
pub struct Asking([libc::sighandler_t; SIGNALS.len()]);

impl Asking {
    /// Takes the signals over.
    #[must_use]
    pub fn new() -> Asking {
        let handler = ask as extern "C" fn(libc::c_int);
        // SAFETY: the handler stores to an atomic and does nothing else.
        Asking(SIGNALS.map(|signal| unsafe { libc::signal(signal, handler as libc::sighandler_t) }))
    }

    /// Whether a signal has asked to end.
    #[must_use]
    pub fn asked(&self) -> bool {
        ASKED.load(Ordering::Relaxed)
    }
}

impl Default for Asking {
    fn default() -> Asking {
        Asking::new()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        for (signal, before) in SIGNALS.into_iter().zip(self.0) {
            // SAFETY: what was there before is put back.
            unsafe { libc::signal(signal, before) };
        }
    }
}
