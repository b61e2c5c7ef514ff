//! How long a slice of work may last.
//!
//! The clock is looked at between pieces of work, not for each object: a piece is at most [`PIECE`] objects of at most one
//! stretch, some ten microseconds. Whoever wants the collector to give way is looked for at the same time.

use core::sync::atomic::{AtomicU32, Ordering};
use vellum_sys::clock;

/// Objects looked through between two looks at the clock.
const PIECE: u32 = 128;

/// Threads that wait for a slice to end: it gives way to them.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// Says, while it lives, that a thread would go on if no slice were running.
#[derive(Debug)]
pub(crate) struct Waiting(());

impl Waiting {
    pub(crate) fn new() -> Waiting {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Waiting(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Forgets who waited in the parent of a forked child.
pub(crate) fn forget() {
    WAITING.store(0, Ordering::Relaxed);
}

/// What is left of a slice.
#[derive(Debug)]
pub(crate) struct Budget {
    /// `CLOCK_MONOTONIC` when it ends. Wall time: a slice that is preempted ends early rather than late.
    deadline_ns: u64,
    /// Whether it ends when somebody waits.
    gives_way: bool,
    left: u32,
    over: bool,
}

impl Budget {
    /// A slice of `ns` nanoseconds from now.
    pub(crate) fn new(ns: u64, gives_way: bool) -> Budget {
        Budget { deadline_ns: clock::now_ns().saturating_add(ns), gives_way, left: PIECE, over: false }
    }

    /// Accounts for an object; whether the slice may go on.
    #[inline(always)]
    pub(crate) fn go_on(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        self.look()
    }

    /// Looks whether the slice may go on.
    #[cold]
    pub(crate) fn look(&mut self) -> bool {
        self.left = PIECE;
        self.over |=
            clock::now_ns() >= self.deadline_ns || (self.gives_way && WAITING.load(Ordering::Relaxed) > 0);
        !self.over
    }
}
