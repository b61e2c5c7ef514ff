//! Selection of the objects that a heap profile samples.
//!
//! The inlined allocation paths have no test for samples. A *run* is the free objects that a thread is
//! handed at once: it ends before the object that is to be a sample. The sample is the only object of the
//! next run, so the slow path hands it out. For each *slot* (objects of one size and layout), the
//! [`Sampler`] draws the number of objects before the next sample.
//!
//! ```text
//! free     ▢ ▢ ▢ ▢ ▢ ▢ ▢ ▢        left = 4: the fourth object from here is the sample
//! 1st run  ▢ ▢ ▢                  then the run is used up, and left = 1
//! 2nd run        ▢                one object, recorded with the caller's stack
//! ```
//!
//! # Invariants
//! * `left` belongs to a thread and a slot: it is the number of objects to allocate beyond the present run,
//!   up to and including the sample. 0 means that no sample was drawn. Unused objects of a run are added to
//!   `left` again, so samples depend on requests alone.

use crate::death::samples::Token;
use crate::world::thread::Thread;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The functions that sample objects.
#[derive(Debug)]
pub struct Sampler {
    /// The number of objects of this many bytes before the next sample.
    pub passing: fn(bytes: usize) -> u32,
    /// Returns whether a new large object of this many bytes is a sample.
    pub is_due: fn(bytes: usize) -> bool,
    /// Records a sample of `bytes` requested bytes, which takes `whole` bytes, with the calling thread's
    /// stack. `None` if it cannot be.
    pub record: fn(bytes: usize, whole: usize) -> Option<Token>,
    /// Notes that an object has died. False, with nothing done, if it is to be called again later.
    pub forget: fn(Token) -> bool,
}

/// The sampler of a heap.
pub(crate) struct Sampling {
    sampler: AtomicPtr<Sampler>,
    /// Changes when the sampler does: what threads have drawn holds no longer. 0: nothing is sampled.
    epoch: AtomicU32,
    /// The last epoch that was not 0.
    last: AtomicU32,
}

impl Sampling {
    /// Has `sampler` sample the objects that are allocated from now on, or with `None` nobody.
    pub(super) fn set(&self, sampler: Option<&'static Sampler>) {
        if let Some(sampler) = sampler {
            self.sampler.store(core::ptr::from_ref(sampler).cast_mut(), Ordering::Release);
            self.epoch.store(self.last.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Release);
        } else {
            // What was sampled is still known, and its sampler is to hear of its end.
            self.epoch.store(0, Ordering::Release);
        }
    }

    pub(crate) fn sampler(&self) -> Option<&'static Sampler> {
        // SAFETY: null, or a pointer to a static, which `set` has stored.
        unsafe { self.sampler.load(Ordering::Acquire).as_ref() }
    }

    /// Returns whether objects are sampled.
    pub(super) fn is_on(&self) -> bool {
        self.epoch.load(Ordering::Relaxed) != 0
    }

    /// Objects of `size` bytes of a slot of the calling thread's up to and with the next sample.
    fn left(&self, thread: &Thread, slot: usize, size: usize) -> u32 {
        let epoch = self.epoch.load(Ordering::Acquire);
        if thread.epoch.replace(epoch) != epoch {
            thread.cursors.iter().for_each(|cursor| cursor.left.set(0));
        }
        match (thread.cursors[slot].left.get(), self.sampler()) {
            (0, Some(sampler)) => (sampler.passing)(size).saturating_add(1),
            (0, None) => u32::MAX,
            (left, _) => left,
        }
    }

    /// The length of the next run, at most `count` objects of `size` bytes: up to the next sample, or the
    /// sample alone.
    pub(super) fn objects_before(&self, thread: &Thread, slot: usize, size: usize, count: u32) -> u32 {
        let (cursor, left) = (&thread.cursors[slot], self.left(thread, slot, size));
        let handed = count.min(left.saturating_sub(1).max(1));
        cursor.sampled.set(left == 1);
        cursor.left.set(left - handed);
        handed
    }
}
