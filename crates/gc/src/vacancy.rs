//! When free blocks that are kept are said to be discardable: the moments of section 4.1 of Cooper, Nettles and Subramanian 1992.
//!
//! ```text
//!                        old    unused   new     free       what was vacated
//!  program runs           .       d       .       .          d
//!  minor collection       .   to copies   .       .          d
//!  before a major one     .       d       d*      d          d            * empty: a minor one came before, or it is collected with the old one
//!  major collection       .   to copies   .       d          d
//!  after it               .       d       .       .          d
//! ```
//!
//! `.` is needed, `d` discardable: such pages go before others, and need not be written (`vellum_pages`' modes say what is done about it). A plan without regions has
//! no new region and copies less: its free blocks are the free region.
//!
//! Departure: where blocks are paged by the process itself, the free region is discardable always, and each block is said to be needed as it is handed out; to the
//! source that was "an expensive operation given the rate at which memory is allocated", object by object. Where the kernel pages, a block that is written to is
//! needed by that; only the list of what may be flushed must be told.
//!
//! # Invariants
//! * A block that is handed out, or given back to the page layer, is in no list of what may be flushed ([`ground::occupy`], [`ground::give_back`]).
//! * Nothing here is done while the world is stopped.

use crate::class::BLOCK;
use crate::ground;
use crate::heap::Heap;
use vellum_pages::{Discard, Pages};

impl Heap {
    /// Whether somebody is told of the blocks that are kept.
    fn tells_of_kept(&self) -> bool {
        match Pages::global().discard_mode() {
            Discard::None => false,
            Discard::Auto => self.watch.is_short(),
            _ => true,
        }
    }

    /// A major collection is about to begin: nothing of the free region is needed until it has ended, but for what copies go to, which has been taken
    /// from it.
    pub(crate) fn vacate_free(&self) {
        if !ground::is_paged() && self.tells_of_kept() {
            ground::leave(&self.pool);
        }
    }

    /// A collection has ended, and `room` says how much of what is kept is the free region; the rest, the cold end of the pool, is for copies.
    pub(crate) fn vacate_unused(&self, is_major: bool) {
        if ground::is_paged() {
            self.pool.iter().for_each(|&unit| ground::vacate(unit));
            return;
        }
        let unused = self.pool.len().saturating_sub(self.room / BLOCK);
        ground::occupy_all(&self.pool[unused..]);
        // After a minor collection it is the same less what copies have taken.
        if is_major && self.tells_of_kept() {
            ground::leave(&self.pool[..unused]);
        }
    }
}
