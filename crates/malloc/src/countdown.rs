//! When a heap's next blocks are sampled: without a test on the fast path, and without one when nothing is.
//!
//! `malloc` pops blocks off `free[c]` and asks nothing. So the list that it is given ends before the block
//! that is to be sampled: the rest of what was fetched is **withheld**. With the list empty `malloc` comes to
//! the slow path, that request is the sample (and its block another: see `crate::profile`), and what was
//! withheld goes on the list, up to the sample after that.
//!
//! ```text
//! fetched   ▢ ▢ ▢ ▢ ▢ ▢ ▢ ▢        left = 4: the fourth request from now is the sample
//! free[c]   ▢ ▢ ▢                  then the list is empty, and left = 1
//! withheld        ▢ ▢ ▢ ▢ ▢
//! ```
//!
//! Invariants: `left[c]` counts the requests to come, beyond the blocks of `free[c]`, up to and with the
//! sample; 0 means that none was drawn, as always where nothing is sampled. Blocks are withheld only while it
//! is 1. Blocks of a list that are given back unused were counted, and are counted back
//! (`Countdown::returned`): samples depend on requests alone.

use crate::class::CLASSES;
use core::cell::Cell;
use core::ptr::null_mut;

/// A free block on a list.
pub(crate) trait Listed {
    /// The next one; null at the end.
    fn following(&self) -> *mut Self;
    /// Makes it the last.
    fn end(&self);
}

/// The state of a heap's samples, whose free blocks are `Block`s. All zero: nothing is sampled.
#[derive(Debug)]
pub(crate) struct Countdown<Block> {
    pub(crate) left: [Cell<u32>; CLASSES],
    withheld: [Cell<*mut Block>; CLASSES],
    pub(crate) withheld_blocks: [Cell<u16>; CLASSES],
    /// Blocks of the list that was fetched last.
    pub(crate) fetched: Cell<u32>,
    /// What `left` was drawn in.
    epoch: Cell<u32>,
}

impl<Block: Listed> Countdown<Block> {
    /// Forgets what was drawn in another epoch, but for the samples that are next: blocks withheld for
    /// them stay so.
    pub(crate) fn begin(&self, epoch: u32) {
        if self.epoch.replace(epoch) != epoch {
            self.left.iter().filter(|left| left.get() != 1).for_each(|left| left.set(0));
        }
    }

    /// Whether the list of `class` is to stay empty, so that the next request comes to the slow path: it is a
    /// sample, or it is not known which one will be.
    pub(crate) fn waits(&self, class: usize, epoch: u32) -> bool {
        self.left[class].get() <= 1 || self.epoch.get() != epoch
    }

    /// The part before the next sample of a list that was just fetched; the rest is withheld.
    #[inline]
    pub(crate) fn part(&self, class: usize, list: *mut Block) -> *mut Block {
        if self.left[class].get() == 0 { list } else { self.cut(class, list, self.fetched.get()) }
    }

    /// The withheld blocks, which stay so.
    pub(crate) fn withheld(&self, class: usize) -> *mut Block {
        self.withheld[class].get()
    }

    /// The withheld blocks, which are to be given back.
    pub(crate) fn give_up(&self, class: usize) -> *mut Block {
        self.withheld[class].replace(null_mut())
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
            rest = unsafe { (*last).following() };
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
        unsafe { (*last).end() };
        list
    }
}
