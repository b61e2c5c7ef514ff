//! The observer: the two features that act on selected allocations, collections at random ones (`checks`)
//! and samples of objects (`sampling`).
//!
//! # Invariants
//! * One word is nonzero while either is on ([`Observer::if_on`]). The allocation path reads that word
//!   once at the end of each run. While the word is 0, this folder costs nothing more.

pub(crate) mod checks;
pub(crate) mod sampling;

use crate::config::Config;
use crate::observer::checks::Checks;
use crate::observer::sampling::{Sampler, Sampling};
use crate::world::thread::Thread;
use core::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Observer {
    is_on: AtomicBool,
    pub checks: Checks,
    pub sampling: Sampling,
}

impl Observer {
    /// The observer, if anything is observed.
    #[inline(always)]
    pub(crate) fn if_on(&self) -> Option<&Observer> {
        self.is_on.load(Ordering::Relaxed).then_some(self)
    }

    /// A heap with these settings begins.
    pub(crate) fn begin(&self, config: &Config) {
        self.checks.begin(config);
        self.settle();
    }

    /// Has `sampler` sample the objects that are allocated from now on, or with `None` nobody.
    pub(crate) fn sample(&self, sampler: Option<&'static Sampler>) {
        self.sampling.set(sampler);
        self.settle();
    }

    fn settle(&self) {
        self.is_on.store(self.checks.is_on() || self.sampling.is_on(), Ordering::Release);
    }

    /// Returns whether the allocation that `thread`, the caller, is about to make collects: one beyond the
    /// inlined path, of a large object or in `slot`.
    #[cold]
    pub(crate) fn collects(&self, thread: &Thread, slot: Option<usize>) -> bool {
        self.checks.is_on() && self.checks.is_time(thread, slot)
    }

    /// The length of the next run of `slot` for `thread`, the caller: 1 to `count` objects of `size` bytes.
    #[cold]
    pub(crate) fn objects(&self, thread: &Thread, slot: usize, size: usize, mut count: u32) -> u32 {
        if self.checks.is_on() {
            count = self.checks.objects_until_time(thread, slot, count);
        }
        if self.sampling.is_on() {
            let before = self.sampling.objects_before(thread, slot, size, count);
            // Whether the next allocation collects is drawn anew if it comes sooner.
            let cut = &thread.cursors[slot].cut;
            cut.set(cut.get() && before == count);
            count = before;
        }
        count
    }

    /// An object of `slot` that `thread`, the caller, has freed is its next one.
    #[cold]
    pub(crate) fn reused(&self, thread: &Thread, slot: usize) {
        if self.sampling.is_on() {
            let size = thread.cursors[slot].freed_size.get() as usize;
            self.sampling.objects_before(thread, slot, size, 1);
        }
    }

    /// Returns whether a new large object, of this many bytes, is a sample.
    pub(crate) fn is_due(&self, bytes: usize) -> bool {
        self.sampling.is_on() && self.sampling.sampler().is_some_and(|sampler| (sampler.is_due)(bytes))
    }
}
