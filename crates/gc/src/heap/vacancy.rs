//! Reports free blocks as discardable, at the moments given in section 4.1 of Cooper, Nettles and
//! Subramanian 1992.
//!
//! ```text
//!                        old    unused   new     free       vacated
//!  program runs           .       d       .       .          d
//!  minor collection       .   copies go   .       .          d
//!  before a major one     .       d       d*      d          d
//!  major collection       .   copies go   .       d          d
//!  after it               .       d       .       .          d
//!
//!  * the new region is empty then: a minor collection came before, or both regions are collected together
//! ```
//!
//! The columns are the heap's regions (`plan::appel`): old objects, room for copies, new objects, free
//! blocks, and blocks that a major collection has emptied. A minor collection is of new objects only. `.`
//! means needed; `d` means discardable: these pages are evicted before others, without being written (the
//! modes of `vellum_pages` define how). "Copies go" means that the collection copies objects to that region.
//! In a plan without regions, all free blocks are the free region.
//!
//! Departure: if the process's own pager pages blocks, the free region is always discardable, and each block
//! is reported as needed when it is handed out. The source rejects such reports for single objects, as "an
//! expensive operation given the rate at which memory is allocated". If the kernel pages blocks, the second
//! report is unnecessary: a write to a block makes its pages needed again.
//!
//! # Invariants
//! * A block that is handed out, or returned to the page layer, is in no list of discardable memory
//!   (`block_source::occupy`, `block_source::give_back`).
//! * The functions here are called while the program runs.

use crate::heap::Heap;
use crate::process::ground::is_paged;
use crate::space::block_source;
use crate::space::size_class::BLOCK;
use vellum_pages::{Discard, Pages};

impl Heap {
    /// Returns whether kept blocks are reported to anybody.
    fn tells_of_kept(&self) -> bool {
        match Pages::global().discard_mode() {
            Discard::None => false,
            Discard::Auto => self.sizing.watch.is_short(),
            _ => true,
        }
    }

    /// A major collection is about to begin. Until it ends, nothing of the free region is needed: room for
    /// copies has been taken from it already.
    pub(crate) fn vacate_free(&self) {
        if !is_paged() && self.tells_of_kept() {
            self.space.source.leave(&self.space.pool);
        }
    }

    /// A collection has ended: `room` is the part of the kept blocks that is the free region. The rest, the
    /// cold end of the pool, is for copies.
    pub(crate) fn vacate_unused(&self, is_major: bool) {
        if is_paged() {
            self.space.pool.iter().for_each(|&unit| block_source::vacate(unit));
            return;
        }
        let unused = self.space.pool.len().saturating_sub(self.sizing.room / BLOCK);
        self.space.source.occupy_all(&self.space.pool[unused..]);
        // After a minor collection it is the same, less the blocks that copies have taken.
        if is_major && self.tells_of_kept() {
            self.space.source.leave(&self.space.pool[..unused]);
        }
    }
}
