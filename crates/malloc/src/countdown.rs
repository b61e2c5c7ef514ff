//! A heap's countdown to its next sample (a block that the sampler records), without a test on the fast path.
//!
//! `malloc` pops blocks off `free[c]`, the list of size class `c`, without a test. When blocks are fetched,
//! the list therefore gets only as many as there are requests before the next sample. The other blocks are
//! **withheld**. The request that finds the list empty is the sample, whose block comes from the sample heap
//! ([`crate::sampling`]). The withheld blocks then become the list, which is cut in the same way.
//!
//! ```text
//! fetched   ▢ ▢ ▢ ▢ ▢ ▢ ▢ ▢        left = 4: the fourth request from now is the sample
//! free[c]   ▢ ▢ ▢                  then the list is empty, and left = 1
//! withheld        ▢ ▢ ▢ ▢ ▢
//! ```
//!
//! # Invariants
//! - `left[c]` is the number of requests until the sample, the sample included, without those that the blocks
//!   of `free[c]` serve. It is 0 before a number is drawn, as in all heaps while nothing is sampled.
//! - Blocks are withheld only while `left[c]` is 1.
//! - If blocks of a list are returned unused, `left[c]` grows by their number ([`Countdown::returned`]), so
//!   that samples depend on requests alone.

use crate::class::CLASSES;
use crate::seal::Block;
use core::cell::Cell;
use core::ptr::null_mut;

/// The state of a heap's samples. All zero: nothing is sampled.
#[derive(Debug)]
pub(crate) struct Countdown {
    pub(crate) left: [Cell<u32>; CLASSES],
    pub(crate) withheld: [Cell<*mut Block>; CLASSES],
    pub(crate) withheld_blocks: [Cell<u16>; CLASSES],
    pub(crate) fetched: Cell<u32>,
    epoch: Cell<u32>,
}

impl Countdown {
    /// Drops the numbers that were drawn in another epoch. A sample that is next stays next, as blocks are
    /// withheld for it.
    pub(crate) fn begin(&self, epoch: u32) {
        if self.epoch.replace(epoch) != epoch {
            self.left.iter().filter(|left| left.get() != 1).for_each(|left| left.set(0));
        }
    }

    /// True if the list of `class` must stay empty, so that the next request takes the slow path: the request
    /// is a sample, or no number is drawn.
    pub(crate) fn waits(&self, class: usize, epoch: u32) -> bool {
        self.left[class].get() <= 1 || self.epoch.get() != epoch
    }

    /// The part before the next sample of a list that was just fetched; the rest is withheld.
    #[inline]
    pub(crate) fn part(&self, class: usize, list: *mut Block) -> *mut Block {
        if self.left[class].get() == 0 { list } else { self.cut(class, list, self.fetched.get()) }
    }

    /// Notes that `blocks` blocks of the list of `class` were given back.
    pub(crate) fn returned(&self, class: usize, blocks: u32) {
        let left = &self.left[class];
        if left.get() != 0 {
            left.set(left.get().saturating_add(blocks));
        }
    }

    /// The part before the next sample of a list of `blocks` blocks; the rest is withheld.
    #[cold]
    pub(crate) fn cut(&self, class: usize, list: *mut Block, blocks: u32) -> *mut Block {
        let left = self.left[class].get();
        if list.is_null() {
            return list;
        }
        if blocks < left {
            self.left[class].set(left - blocks);
            return list;
        }
        let (mut last, mut rest) = (null_mut::<Block>(), list);
        for passed in 1..left {
            last = rest;
            // SAFETY: a block on the list is free memory of at least two words.
            rest = unsafe { (*last).next() };
            // In a forked child a count may be one too high: see `forks`.
            if rest.is_null() {
                self.left[class].set(left - passed);
                return list;
            }
        }
        self.left[class].set(1);
        self.withheld[class].set(rest);
        self.withheld_blocks[class].set((blocks - (left - 1)) as u16);
        if last.is_null() {
            return null_mut();
        }
        // SAFETY: the last block before the sample, which is free.
        unsafe { (*last).link(null_mut()) };
        list
    }
}
