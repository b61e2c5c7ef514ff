//! Statistics of ambiguous roots: words of registers, stacks and static data that look like the address of an
//! object.
//!
//! Each such word costs a search for its object, and pins the object. The number of such words, and of
//! blocks that they lead into, shows the cost of a program's stacks in a plan that moves objects. The counts
//! also show what could be saved by treating words that lead into the same block together.
//!
//! # Invariants
//! * Only words of stacks, thread-local and static data are counted: not tables, frames or objects.
//! * A block is counted once per scan of the roots. Scans have numbers of 16 bits, and a block keeps the
//!   number of the last scan that counted it. A block that no scan counts for 65,536 scans is missed once.
//!
//! # Source
//! Smith and Morrisett 1998, Table 3: roots, promoted pages, roots per promoted page. There every page that a
//! root led into was promoted. Here only blocks that were to be emptied count as promoted
//! ([`Stats::note_promoted`](crate::heap::statistics::Stats::note_promoted)), and the room around pinned
//! objects in them is used again.

use crate::space::block::{Block, Index};
use core::cell::Cell;

/// Numbers the scans of the roots.
pub(crate) struct Looks(Cell<u16>);

impl Looks {
    pub(crate) const fn new() -> Looks {
        Looks(Cell::new(0))
    }

    /// A new scan, which has found nothing yet.
    pub(crate) fn begin(&self) -> Rooted {
        let look = self.0.get().wrapping_add(1);
        self.0.set(look);
        Rooted { look, ..Rooted::default() }
    }
}

/// The findings of one scan of the roots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rooted {
    look: u16,
    /// Words that were scanned.
    pub searched: usize,
    /// Words that led to an object.
    pub words: u64,
    /// Blocks and large objects that they led into.
    pub blocks: u64,
}

impl Rooted {
    /// Counts a root that leads to an object of a block, if there is one.
    #[inline(always)]
    pub(crate) fn note(&mut self, block: &Block, index: Index) {
        if block.is_allocated(index) {
            self.words += 1;
            self.blocks += u64::from(block.rooted_at.replace(self.look) != self.look);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::block::{BITMAPS, Scan, count_of, descriptor_bytes, pairs_of};
    use core::ptr::null;

    #[test]
    fn roots_are_counted_if_they_lead_to_an_object_and_blocks_once_a_look() {
        let count = count_of(64);
        let mut memory = vec![0u64; descriptor_bytes(pairs_of(count), BITMAPS) / size_of::<u64>()];
        // SAFETY: zeroed memory of a descriptor's size with its bitmaps, aligned as words are, which lives as
        // long as this test.
        let block = unsafe { &*memory.as_mut_ptr().cast::<Block>() };
        block.begin(vellum_sys::Addr::new(0x10_0000), 64, count, 1, Scan::Words, null());
        block.allocated(0).set(0b101);
        let looks = Looks::new();
        for _ in 0..2 {
            let mut rooted = looks.begin();
            for index in [0, 1, 2, 2, count] {
                rooted.note(block, Index(index));
            }
            assert_eq!((rooted.words, rooted.blocks), (3, 1));
        }
    }
}
