//! When kept free blocks are reported as discardable: the moments of section 4.1 of Cooper, Nettles and
//! Subramanian 1992.
//!
//! ```text
//!                        old    unused   new     free       vacated
//!  program runs           .       d       .       .          d
//!  minor collection       .   to copies   .       .          d
//!  before a major one     .       d       d*      d          d
//!  major collection       .   to copies   .       d          d
//!  after it               .       d       .       .          d
//!
//!  * empty: a minor one came before, or it is collected with the old region
//! ```
//!
//! `.` is needed, `d` discardable: such pages leave memory before others, and need not be written (the modes
//! of `vellum_pages` define the means). A plan without regions has no new region and copies less: its free
//! blocks are the free region.
//!
//! Departure: where the process pages blocks itself, the free region is always discardable, and each block is
//! reported as needed when it is handed out. To the source that was "an expensive operation given the rate at
//! which memory is allocated", object by object. If the kernel pages, a write shows that a block is needed;
//! only the list of flushable blocks must be kept up to date.
//!
//! # Invariants
//! * A block that is handed out, or given back to the page layer, is in no list of what may be flushed
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
