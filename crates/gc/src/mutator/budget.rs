//! How long a slice of work may last.
//!
//! The clock is read between pieces of work, not for each object: a piece is at most [`PIECE`] objects of at
//! most one stretch, some ten microseconds. At the same time the slice tests whether a thread waits for it to
//! yield.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use vellum_sys::clock;

/// Objects scanned between two readings of the clock.
const PIECE: u32 = 128;

/// Threads that wait for a slice to end: it yields to them.
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

/// Drops the parent's waiting threads, in a forked child.
pub(crate) fn forget() {
    WAITING.store(0, Ordering::Relaxed);
}

/// The rest of a slice.
#[derive(Debug)]
pub(crate) struct Budget {
    /// `CLOCK_MONOTONIC` when it ends. Wall time: a slice that is preempted ends early rather than late.
    deadline_ns: u64,
    /// Whether it ends when a thread waits.
    gives_way: bool,
    left: u32,
    over: bool,
    /// Objects, where the slice is measured by these.
    objects: Option<u32>,
}

/// Whether slices in idle time end when another thread wants to go on.
static GIVING_WAY: AtomicBool = AtomicBool::new(true);

/// Sets whether slices in idle time yield to threads that want to go on. They do from the start; `false` is
/// for experiments on what that is worth.
pub fn give_way(on: bool) {
    GIVING_WAY.store(on, Ordering::Relaxed);
}

impl Budget {
    /// A slice of `ns` nanoseconds from now.
    pub(crate) fn new(ns: u64, gives_way: bool) -> Budget {
        let gives_way = gives_way && GIVING_WAY.load(Ordering::Relaxed);
        let deadline_ns = clock::now_ns().saturating_add(ns);
        Budget { deadline_ns, gives_way, left: PIECE, over: false, objects: None }
    }

    pub(crate) fn of_objects(objects: u32) -> Budget {
        Budget { deadline_ns: u64::MAX, gives_way: false, left: objects, over: false, objects: Some(objects) }
    }

    /// Accounts for an object; returns whether the slice may go on.
    #[inline(always)]
    pub(crate) fn go_on(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        self.look()
    }

    /// Tests whether the slice may go on.
    #[cold]
    pub(crate) fn look(&mut self) -> bool {
        if self.objects.is_some() {
            self.over |= self.left == 0;
            return !self.over;
        }
        self.over |=
            clock::now_ns() >= self.deadline_ns || (self.gives_way && WAITING.load(Ordering::Relaxed) > 0);
        // Once over it stays over, however often it is asked: one part of a trace may stop and the next ask.
        self.left = if self.over { 0 } else { PIECE };
        !self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_that_is_over_does_not_go_on() {
        for mut budget in [Budget::new(0, false), Budget::of_objects(200)] {
            let objects = (0..1000).take_while(|_| budget.go_on()).count();
            assert!(objects < 300, "{objects} objects");
            assert!((0..1000).all(|_| !budget.go_on()));
        }
    }
}
