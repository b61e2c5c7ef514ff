//! The trait [`Plan`] (a way to collect a heap): the decisions in which plans differ (which objects are
//! copied, where new memory comes from, the steps of a collection).
//!
//! The defaults are those of a heap in which objects stay and every collection traces the whole heap.
//!
//! # Invariants
//! * The caller holds the heap's lock. Methods are called while the program runs, unless their comment
//!   says otherwise.

use crate::heap::Heap;
use crate::plan::evacuation::Copies;
use crate::sizing::policy::Found;
use crate::space::block::Block;
use crate::space::size_class::BLOCK;
use crate::world::budget::Budget;
use crate::world::thread::Thread;
use crate::write_tracking::Dirty;

/// The outcome of a collection that is not a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Less {
    Nothing,
    /// A collection has ended; a whole one must follow.
    NotEnough,
    /// A collection has ended, and made room.
    Enough,
}

/// The outcome of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    /// A collection has ended.
    Done,
    /// Nothing was done, and will not be before the next collection.
    Nothing,
}

/// Which free blocks are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBlocks {
    /// Free blocks that will be used before the end of the next collection.
    pub needed: usize,
    /// Bytes that may turn out unneeded without the heap counting as shrunk.
    pub swings: usize,
}

pub(crate) trait Plan {
    /// Returns whether a block counts as handed out as soon as a thread has it: the budget is whole blocks.
    fn counts_blocks(&self) -> bool {
        false
    }

    /// The state of copying, under a plan that moves.
    fn copies(&self) -> Option<&Copies> {
        None
    }

    /// [`Plan::copies`], to be changed.
    fn copies_mut(&mut self) -> Option<&mut Copies> {
        None
    }

    /// Returns whether a collection in slices is under way.
    fn is_in_cycle(&self) -> bool {
        false
    }

    /// Drops a collection in slices that is under way: the next collection starts from the beginning. The
    /// account of writes goes on, if it can.
    fn drop_cycle(&mut self, heap: &mut Heap) {
        if heap.tracking.account.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
            self.end_account(heap);
        }
    }

    /// Ends the account of writes. No collection in slices is under way.
    fn end_account(&mut self, heap: &mut Heap) {
        heap.end_account();
    }

    /// Gets the memory that a whole collection will need; false if memory is out.
    fn prepare(&mut self, _heap: &mut Heap) -> bool {
        true
    }

    /// A whole collection begins: chooses what to copy, and gets room for it. The world still runs.
    fn choose(&mut self, _heap: &mut Heap) {}

    /// Returns whether threads may allocate in blocks that have something alive.
    fn may_fill_holes(&self, _heap: &Heap) -> bool {
        true
    }

    /// The most bytes that the heap and its free blocks may have when a large object is made; `limit` must
    /// not be exceeded.
    fn most_with_pool(&self, _heap: &Heap, limit: usize) -> usize {
        limit
    }

    /// A block or large object came to the heap.
    fn block_came(&mut self, _heap: &mut Heap, _block: &Block) {}

    /// A thread is to allocate from a block that was there before.
    fn block_goes_out(&mut self, _heap: &mut Heap, _block: &Block) {}

    /// Makes the slice that is due of a collection in slices, if any, for `thread`, which is inside.
    fn step_if_due(&mut self, _heap: &mut Heap, _thread: &'static Thread) -> Progress {
        Progress::Nothing
    }

    /// Makes room with less than a whole collection, if that can be.
    fn collect_less(&mut self, _heap: &mut Heap, _thread: &'static Thread) -> Less {
        Less::Nothing
    }

    /// Collects a little for a heap that is tested: a slice of `budget`, or the new objects. `None`: only a
    /// whole collection can be made.
    fn collect_eagerly(
        &mut self,
        _heap: &mut Heap,
        _thread: &'static Thread,
        _budget: Budget,
    ) -> Option<Progress> {
        None
    }

    /// Returns whether the next collection is a whole one only because writes cannot be tracked.
    fn is_whole_in_vain(&self, heap: &Heap) -> bool {
        heap.config.slice_ns != 0 && (heap.has_procedures || !Dirty::is_available())
    }

    /// Collects all of the heap, for `thread`, which is inside. False, and nothing was done, if memory for
    /// the lists is out.
    fn collect(&mut self, heap: &mut Heap, thread: &'static Thread) -> bool;

    /// A trace has ended and dead blocks are free: the pool's from `free_before` on. The world stands still.
    fn settle(&mut self, _heap: &mut Heap, _free_before: usize) {}

    /// Sets when to collect next, by the findings of a collection.
    fn size(&mut self, heap: &mut Heap, found: Found, _is_major: bool) {
        heap.set_room(found);
    }

    /// Bytes to hand out before the world must stop for a whole collection.
    fn most_to_hand_out(&self, heap: &Heap) -> usize {
        heap.sizing.room
    }

    /// The allocation budget by the present state, in the middle of it.
    fn room_now(&mut self, heap: &mut Heap) -> usize {
        heap.room_for(heap.sizing.found)
    }

    /// The smallest size of the heap has changed.
    fn least_changed(&mut self, heap: &mut Heap) {
        heap.sizing.room = self.room_now(heap).max(heap.sizing.used);
    }

    /// The free blocks to keep after a collection.
    fn kept(&self, heap: &Heap) -> KeptBlocks {
        KeptBlocks { needed: heap.sizing.room / BLOCK, swings: heap.space.bytes / 2 }
    }

    /// Memory was given back after a collection.
    fn gave_back(&mut self, _heap: &mut Heap) {}

    /// A whole collection has ended; it took `spent_ns`.
    fn ended(&mut self, _heap: &mut Heap, _spent_ns: u64) {}

    /// Returns whether a trace has left out words of this block that lead to new objects: they are accidents.
    fn leaves_out(&self, _block: &Block) -> bool {
        false
    }

    /// Checks what the plan adds to the heap's invariants.
    ///
    /// # Errors
    /// The broken invariant.
    fn check(&self, heap: &Heap) -> Result<(), &'static str> {
        heap.check_old_region(0)
    }
}

impl dyn Plan + '_ {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Names the first that is broken.
    pub(crate) fn validate(&self, heap: &Heap) -> Result<(), &'static str> {
        heap.check(self.is_in_cycle())?;
        self.check(heap)
    }

    /// Checks that live objects lead to live ones only, at their present addresses. After a trace.
    ///
    /// # Errors
    /// The broken invariant.
    pub(crate) fn check_traced(&self, heap: &Heap) -> Result<(), &'static str> {
        let targets: &[&'static Block] = self.copies().map_or(&[], |copies| &copies.targets);
        heap.check_reach(targets, |block| self.leaves_out(block))
    }
}
