//! Finds a thread's next block: one with free objects in it, or an empty one. If the allocation budget is
//! spent, the thread collects first.

use crate::instance::Collector;
use crate::space::block::{Block, Region, Scan, count_of, pairs_of};
use crate::space::block_source;
use crate::space::layout::Layout;
use crate::space::size_class::BLOCK;
use crate::space::slot::Slot;
use vellum_pages::{PAGE, round_up};
use vellum_sys::Span;

/// The answer to a thread that needs a block.
pub(crate) enum Supply {
    Block(&'static Block),
    /// A collection is due.
    Collect,
    /// There is no memory.
    Full,
}

impl Collector {
    fn may_collect(&self, collected: bool) -> bool {
        self.heap.held == 0 && !collected && self.heap.is_welcome()
    }

    /// A block for `slot`; `collected`: a collection was already made for it.
    pub(crate) fn supply(&mut self, slot: usize, collected: bool) -> Supply {
        self.check_room();
        if self.heap.sizing.used >= self.plan.most_to_hand_out(&self.heap) && self.may_collect(collected) {
            return Supply::Collect;
        }
        let Collector { heap, plan } = self;
        if let Some(block) = heap.space.slots[slot].roomy
            && plan.may_fill_holes(heap)
        {
            heap.space.slots[slot].roomy = block.next.get();
            plan.block_goes_out(heap, block);
            block.next.set(None);
            if heap.counts_blocks {
                heap.hand_out((block.count.get() - block.allocated_count()) as usize * block.size.get());
            }
            return Supply::Block(block);
        }
        if !self.heap.may_have_block() && self.may_collect(collected) {
            return Supply::Collect;
        }
        if self.heap.space.bytes + BLOCK > self.heap.limit() {
            return Supply::Full;
        }
        match self.new_block(slot) {
            Some(block) => Supply::Block(block),
            None if self.may_collect(collected) => Supply::Collect,
            None => Supply::Full,
        }
    }

    /// Makes sure that a large budget is checked again before it is used up.
    #[inline]
    fn check_room(&mut self) {
        if self.heap.sizing.used >= self.heap.sizing.watch.check_at() {
            self.look_again();
        }
    }

    /// Checks, in the middle of a large budget, whether the memory that it was given for is still available;
    /// the collection comes sooner if not.
    #[cold]
    fn look_again(&mut self) {
        let Collector { heap, plan } = self;
        let used = heap.sizing.used;
        let room = plan.room_now(heap);
        heap.sizing.room = heap.sizing.room.min(room.max(used));
        heap.sizing.watch.check_after(used);
    }

    /// A large object; `Supply::Block` has it as its only one.
    pub(crate) fn large(
        &mut self,
        bytes: usize,
        scan: Scan,
        layout: *const Layout,
        collected: bool,
    ) -> Supply {
        let extent_bytes = round_up(bytes, PAGE);
        self.check_room();
        let Collector { heap, plan } = self;
        let limit = heap.limit();
        let over = heap.space.bytes.checked_add(extent_bytes).is_none_or(|bytes| bytes > limit);
        let is_due = heap.sizing.used > 0
            && (heap.sizing.used.saturating_add(extent_bytes) > plan.most_to_hand_out(heap)
                || heap.is_large_enough(extent_bytes));
        if (over || is_due) && self.may_collect(collected) {
            return Supply::Collect;
        }
        let Collector { heap, plan } = self;
        // The pool's blocks are resident, and count for the limit and the budget.
        let most = plan.most_with_pool(heap, limit);
        while !over
            && let Some(&unit) = heap.space.pool.last()
            && heap.space.bytes + heap.space.pool.len() * BLOCK + extent_bytes > most
        {
            heap.space.pool.truncate(heap.space.pool.len() - 1);
            heap.space.source.give_back(unit);
        }
        let block = if over { None } else { self.new_large(bytes, extent_bytes, scan, layout) };
        match block {
            Some(block) => Supply::Block(block),
            None if self.may_collect(collected) => Supply::Collect,
            None => Supply::Full,
        }
    }

    fn new_large(
        &mut self,
        bytes: usize,
        extent_bytes: usize,
        scan: Scan,
        layout: *const Layout,
    ) -> Option<&'static Block> {
        let Collector { heap, plan } = self;
        heap.space.blocks.reserve(1).ok()?;
        let block = heap.space.descriptors.take(pairs_of(1))?;
        let zero = scan != Scan::Nothing;
        let Some(base) = block_source::take(extent_bytes, zero) else {
            heap.space.descriptors.put(block);
            return None;
        };
        if !heap.space.table.enter(block, Span::new(base, extent_bytes)) {
            heap.space.descriptors.put(block);
            heap.space.source.give_back(base);
            return None;
        }
        block.begin(base, round_up(bytes, size_of::<usize>()), 1, 0, scan, layout);
        block.extent.set(extent_bytes);
        block.take_run(0, extent_bytes);
        heap.space.blocks.push(block).ok()?;
        plan.block_came(heap, block);
        heap.grew(extent_bytes);
        heap.hand_out(extent_bytes);
        Some(block)
    }

    fn new_block(&mut self, slot: usize) -> Option<&'static Block> {
        let Collector { heap, plan } = self;
        let Slot { size, scan, layout, kept, .. } = heap.space.slots[slot];
        let count = count_of(size);
        heap.space.blocks.reserve(1).ok()?;
        let block = heap.space.descriptors.take(pairs_of(count))?;
        let unit = heap.take_unit();
        let entered = unit.filter(|&unit| heap.space.table.enter(block, Span::new(unit, BLOCK)));
        let Some(unit) = entered else {
            heap.space.descriptors.put(block);
            if let Some(unit) = unit {
                heap.space.source.give_back(unit);
            }
            return None;
        };
        block.begin(unit, size, count, slot as u16, scan, layout);
        if kept {
            block.region.set(Region::Kept);
        }
        heap.space.blocks.push(block).ok()?;
        plan.block_came(heap, block);
        heap.grew(BLOCK);
        if heap.counts_blocks {
            heap.hand_out(BLOCK);
        }
        Some(block)
    }
}
