//! What a plan decides: what to copy, where new memory comes from, how a collection goes, and what follows
//! it.
//!
//! The defaults are those of a heap in which everything stays where it is and every collection traces all
//! of it.
//!
//! # Invariants
//! * The heap is under its lock, and its plan is this one. Methods called with the world stopped say so.

use crate::heap::Heap;
use crate::mutator::budget::Budget;
use crate::mutator::thread::Thread;
use crate::plan::mark_sweep::cycle::Progress;
use crate::plan::sweep::KeptBlocks;
use crate::sizing::policy::Found;
use crate::space::block::Block;
use crate::space::size_class::BLOCK;

/// The outcome of a collection that is not a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Less {
    Nothing,
    /// A collection has ended; a whole one must follow.
    NotEnough,
    /// A collection has ended, and made room.
    Enough,
}

/// See the head of this file.
pub(crate) trait Plan: Sync {
    /// Gets the memory that a whole collection will need; false if memory is out.
    fn prepare(&self, _heap: &mut Heap) -> bool {
        true
    }

    /// A whole collection begins: chooses what to copy, and gets room for it. The world still runs.
    fn choose(&self, _heap: &mut Heap) {}

    /// Whether threads may allocate in blocks that have something alive.
    fn may_fill_holes(&self, _heap: &Heap) -> bool {
        true
    }

    /// The most bytes that the heap and its free blocks may have when a large object is made; `limit` must
    /// not be exceeded.
    fn most_with_pool(&self, _heap: &Heap, limit: usize) -> usize {
        limit
    }

    /// A block or large object came to the heap.
    fn block_came(&self, _heap: &mut Heap, _block: &Block) {}

    /// A thread is to allocate from a block that was there before.
    fn block_goes_out(&self, _heap: &mut Heap, _block: &Block) {}

    /// Makes the slice that is due of a collection in slices, if any, for `thread`, which is inside.
    fn step_if_due(&self, _heap: &mut Heap, _thread: &'static Thread) -> Progress {
        Progress::Nothing
    }

    /// Makes room with less than a whole collection, if that can be.
    fn collect_less(&self, _heap: &mut Heap, _thread: &'static Thread) -> Less {
        Less::Nothing
    }

    /// Collects a little for a heap that is tested: a slice of `budget`, or the new objects. `None`: only a
    /// whole collection can be made.
    fn collect_eagerly(
        &self,
        _heap: &mut Heap,
        _thread: &'static Thread,
        _budget: Budget,
    ) -> Option<Progress> {
        None
    }

    /// Whether the next collection is a whole one only because writes cannot be tracked.
    fn is_whole_in_vain(&self, heap: &Heap) -> bool {
        heap.wants_slices_in_vain()
    }

    /// Collects all of the heap, for `thread`, which is inside. False, and nothing was done, if memory for
    /// the lists is out.
    fn collect(&self, heap: &mut Heap, thread: &'static Thread) -> bool;

    /// A trace has ended and dead blocks are free: the pool's from `free_before` on. The world stands still.
    fn settle(&self, _heap: &mut Heap, _free_before: usize) {}

    /// Sets when to collect next, by the findings of a collection.
    fn size(&self, heap: &mut Heap, found: Found, _is_major: bool) {
        heap.set_room(found);
    }

    /// The allocation budget by what is known now, in the middle of it.
    fn room_now(&self, heap: &mut Heap) -> usize {
        heap.room_for(heap.sizing.found)
    }

    /// The smallest size of the heap was set anew.
    fn least_changed(&self, heap: &mut Heap) {
        heap.sizing.room = self.room_now(heap).max(heap.sizing.used);
    }

    /// How many free blocks are kept after a collection.
    fn kept(&self, heap: &Heap) -> KeptBlocks {
        KeptBlocks { needed: heap.sizing.room / BLOCK, swings: heap.space.bytes / 2 }
    }

    /// A whole collection has ended; it took `spent_ns`.
    fn ended(&self, _heap: &mut Heap, _spent_ns: u64) {}
}
