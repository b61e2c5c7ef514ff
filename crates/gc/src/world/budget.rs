//! The time limit of a slice (a part of a collection in one pause).
//!
//! A slice scans pieces of [`PIECE`] objects (or parts of long objects), about ten microseconds each. After a
//! piece, the slice ends if its time is up, or if a thread waits for the slice to end.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use vellum_sys::clock;

/// Objects scanned between two readings of the clock.
const PIECE: u32 = 128;

/// The threads for which slices in idle time end.
pub(crate) struct Waiters {
    /// Threads that wait for a slice to end: it yields to them.
    count: AtomicU32,
    /// Slices do not yield: for experiments.
    are_ignored: AtomicBool,
}

/// Counts, while it lives, a thread that would go on if no slice were running.
pub(crate) struct Waiting<'w>(&'w Waiters);

impl Waiters {
    pub(crate) fn wait(&self) -> Waiting<'_> {
        self.count.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    /// Drops the parent's waiting threads, in a forked child.
    pub(crate) fn forget(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    /// Sets whether slices in idle time yield to threads that are ready.
    pub(crate) fn give_way(&self, on: bool) {
        self.are_ignored.store(!on, Ordering::Relaxed);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The rest of a slice.
pub(crate) struct Budget {
    /// `CLOCK_MONOTONIC` when it ends. Wall time: a slice that is preempted ends early rather than late.
    deadline_ns: u64,
    /// The threads for which the slice ends early.
    gives_way: Option<&'static Waiters>,
    left: u32,
    over: bool,
    /// Objects, where the slice is measured by these.
    objects: Option<u32>,
}

impl Budget {
    /// A slice of `ns` nanoseconds from now, which ends when a thread of `gives_way` waits.
    pub(crate) fn new(ns: u64, gives_way: Option<&'static Waiters>) -> Budget {
        let gives_way = gives_way.filter(|waiters| !waiters.are_ignored.load(Ordering::Relaxed));
        let deadline_ns = clock::now_ns().saturating_add(ns);
        Budget { deadline_ns, gives_way, left: PIECE, over: false, objects: None }
    }

    pub(crate) fn of_objects(objects: u32) -> Budget {
        Budget { deadline_ns: u64::MAX, gives_way: None, left: objects, over: false, objects: Some(objects) }
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
        let is_awaited = |waiters: &Waiters| waiters.count.load(Ordering::Relaxed) > 0;
        self.over |= clock::now_ns() >= self.deadline_ns || self.gives_way.is_some_and(is_awaited);
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
        for mut budget in [Budget::new(0, None), Budget::of_objects(200)] {
            let objects = (0..1000).take_while(|_| budget.go_on()).count();
            assert!(objects < 300, "{objects} objects");
            assert!((0..1000).all(|_| !budget.go_on()));
        }
    }
}
