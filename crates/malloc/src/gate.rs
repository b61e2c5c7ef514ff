//! The gate of a heap: a lock under which either the heap's thread or the helper thread changes the heap.
//!
//! The thread enters the gate on each slow path, so entering must cost almost nothing. The helper closes the
//! gate a few times a second at most. The algorithm is Dekker's, with a fence on the helper's side only:
//!
//! - the thread stores *inside* and then loads *closed*, with a compiler fence between the two;
//! - the helper stores *closed*, has every processor that runs this process execute a full fence by
//!   `membarrier`, and then loads *inside*.
//!
//! At least one of the two therefore sees the other's store. Fast paths do not enter the gate, as the helper
//! does not touch their data (the heap's lists, and `free` and `needed` of slabs with blocks in use). Without
//! `membarrier` only the thread ever enters, and free slabs stay until that thread's next call.
//!
//! `turns` is odd while the thread is inside, and only grows: between two equal readings, nobody entered.

use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use vellum_sys::thread;

const OPEN: u32 = 0;
const CLOSED: u32 = 1;

#[derive(Debug)]
pub(crate) struct Gate {
    turns: AtomicU32,
    closed: AtomicU32,
}

impl Gate {
    /// Enters, for the heap's own thread, waiting while the gate is closed. False if the thread is inside
    /// already: a signal handler interrupted it there.
    #[inline]
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        let turns = self.turns.load(Ordering::Relaxed);
        if turns & 1 != 0 {
            return false;
        }
        self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if self.closed.load(Ordering::Acquire) != OPEN {
            self.enter_closed();
        }
        true
    }

    /// Enters unless the gate is closed, for a thread that has made itself the heap's for a moment.
    #[must_use]
    pub(crate) fn try_enter(&self) -> bool {
        self.turns.store(self.turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::SeqCst);
        let entered = self.closed.load(Ordering::SeqCst) == OPEN;
        if !entered {
            self.leave();
        }
        entered
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.turns.store(self.turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    #[cold]
    fn enter_closed(&self) {
        loop {
            // Out again, so that the thread that closed the gate need not wait.
            self.leave();
            while self.closed.load(Ordering::Acquire) != OPEN {
                thread::wait(&self.closed, CLOSED, WAIT_NS);
            }
            self.turns.store(self.turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::SeqCst);
            if self.closed.load(Ordering::SeqCst) == OPEN {
                return;
            }
        }
    }

    /// Closes the gate. The heap is the caller's after a `membarrier`, if [`Gate::is_inside`] is false then.
    pub(crate) fn close(&self) {
        self.closed.store(CLOSED, Ordering::SeqCst);
    }

    pub(crate) fn is_inside(&self) -> bool {
        self.turns.load(Ordering::Acquire) & 1 != 0
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed) != OPEN
    }

    pub(crate) fn open(&self) {
        self.closed.store(OPEN, Ordering::Release);
    }

    /// A number that changes whenever the gate is passed.
    pub(crate) fn turns(&self) -> u32 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Makes the gate new for a heap whose thread does not exist in this forked child.
    pub(crate) fn reset_after_fork(&self) {
        self.turns.store(self.turns.load(Ordering::Relaxed).wrapping_add(1) & !1, Ordering::Relaxed);
        self.open();
    }
}

/// The time a thread sleeps before it tests a closed gate again. Opening wakes nobody, as a gate is closed
/// for microseconds and almost never found closed.
const WAIT_NS: u64 = 50_000;
