//! Wakes the idle thread (it collects while the program waits), and records whether it is requested or made.
//!
//! This file is separate, so that code that wakes the thread does not depend on the thread's work.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use vellum_sys::thread as futex;

/// The idle thread has work once one part in this many of the allocation budget was used. A collection in
/// idle time is not made long before it is due.
pub(crate) const WORTH_PART: usize = 2;

/// The thread is to be made.
const WANTED: u32 = 1;
/// The thread has been made.
const MADE: u32 = 2;

pub(crate) struct IdleSignal {
    state: AtomicU32,
    /// Changes when it is poked.
    pokes: AtomicU32,
    /// There may be something to do.
    work: AtomicBool,
}

impl IdleSignal {
    /// Requests the thread, which is made at its first use.
    pub(crate) fn want(&self) {
        self.state.store(WANTED, Ordering::Release);
    }

    /// In a forked child: it has stayed with the parent.
    pub(crate) fn forget(&self) {
        if self.state.load(Ordering::Relaxed) == MADE {
            self.want();
        }
    }

    /// Wakes it if there is something to do. The caller is blocked, or no mutator any more.
    #[inline]
    pub(crate) fn poke(&self) {
        if self.work.load(Ordering::Relaxed) && self.state.load(Ordering::Relaxed) == MADE {
            self.pokes.fetch_add(1, Ordering::Release);
            futex::wake(&self.pokes);
        }
    }

    /// Returns whether the thread is to be made.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.state.load(Ordering::Relaxed) == WANTED
    }

    /// Returns whether the caller is the one to make it.
    pub(crate) fn is_claimed(&self) -> bool {
        self.state.compare_exchange(WANTED, MADE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Enough was allocated for idle time to be used.
    #[inline]
    pub(crate) fn note_work(&self) {
        if !self.work.load(Ordering::Relaxed) {
            self.work.store(true, Ordering::Relaxed);
        }
    }

    /// There is nothing to do.
    pub(crate) fn no_work(&self) {
        self.work.store(false, Ordering::Relaxed);
    }

    /// A number that changes when it is woken.
    pub(crate) fn pokes(&self) -> u32 {
        self.pokes.load(Ordering::Acquire)
    }

    /// Waits until `pokes` differs from `seen`, or for `ns` nanoseconds.
    pub(crate) fn wait(&self, seen: u32, ns: u64) {
        futex::wait(&self.pokes, seen, ns);
    }
}
