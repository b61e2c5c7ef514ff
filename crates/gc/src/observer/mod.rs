//! The observer: the two features that act on selected allocations, collections at random ones (`checks`)
//! and samples of objects (`sampling`).
//!
//! # Invariants
//! * One word is nonzero while either feature is on ([`Observer::if_on`]). The allocation path reads that
//!   word once at the end of each run, and once more after each new block. While the word is 0, this folder
//!   costs nothing more.
//! * No other state shows which feature is on. Each feature changes its own part of the word, because
//!   different threads switch the features on and off, and one feature is switched without the heap's lock.

pub(crate) mod checks;
pub(crate) mod sampling;

use crate::config::Config;
use crate::observer::checks::Checks;
use crate::observer::sampling::{Sampler, Sampling};
use crate::world::thread::Thread;
use core::sync::atomic::{AtomicU32, Ordering};

/// Allocations collect at random.
const CHECKS: u32 = 1;
/// The lowest bit of the epoch of sampling, which is 0 while nothing is sampled.
const EPOCH: u32 = 2;

pub(crate) struct Observer {
    /// [`CHECKS`], and from [`EPOCH`] on the epoch of sampling.
    word: AtomicU32,
    pub checks: Checks,
    pub sampling: Sampling,
}

impl Observer {
    /// The observer, if anything is observed.
    #[inline(always)]
    pub(crate) fn if_on(&self) -> Option<&Observer> {
        (self.word.load(Ordering::Relaxed) != 0).then_some(self)
    }

    /// A heap with these settings begins.
    pub(crate) fn begin(&self, config: &Config) {
        self.checks.begin(config);
        self.change(CHECKS, if self.checks.mean() == 0 { 0 } else { CHECKS });
    }

    /// Has `sampler` sample the objects that are allocated from now on, or with `None` nobody.
    pub(crate) fn sample(&self, sampler: Option<&'static Sampler>) {
        let epoch = self.sampling.set(sampler);
        self.change(!CHECKS, epoch.wrapping_mul(EPOCH));
    }

    /// Sets the bits of `part` to `value`.
    fn change(&self, part: u32, value: u32) {
        let changed = |word: u32| Some(word & !part | value);
        let _ = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, changed);
    }

    fn checks(&self) -> Option<&Checks> {
        (self.word.load(Ordering::Relaxed) & CHECKS != 0).then_some(&self.checks)
    }

    /// The epoch of sampling; `None` while nothing is sampled.
    fn epoch(&self) -> Option<u32> {
        Some(self.word.load(Ordering::Acquire) / EPOCH).filter(|&epoch| epoch != 0)
    }

    /// Returns whether the allocation that `thread`, the caller, is about to make collects: one beyond the
    /// inlined path, of a large object or in `slot`.
    #[cold]
    pub(crate) fn collects(&self, thread: &Thread, slot: Option<usize>) -> bool {
        self.checks().is_some_and(|checks| checks.is_time(thread, slot))
    }

    /// The length of the next run of `slot` for `thread`, the caller: 1 to `count` objects of `size` bytes.
    #[cold]
    pub(crate) fn objects(&self, thread: &Thread, slot: usize, size: usize, mut count: u32) -> u32 {
        if let Some(checks) = self.checks() {
            count = checks.objects_until_time(thread, slot, count);
        }
        if let Some(epoch) = self.epoch() {
            let before = self.sampling.objects_before(epoch, thread, slot, size, count);
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
        if let Some(epoch) = self.epoch() {
            let size = thread.cursors[slot].freed_size.get() as usize;
            self.sampling.objects_before(epoch, thread, slot, size, 1);
        }
    }

    /// Returns whether a new large object, of this many bytes, is a sample.
    pub(crate) fn is_due(&self, bytes: usize) -> bool {
        self.epoch().is_some() && self.sampling.sampler().is_some_and(|sampler| (sampler.is_due)(bytes))
    }
}
