//! Supply: where a thread's next block comes from: one with room, a free one, or a collection first.

use crate::heap::Heap;
use crate::plan;
use crate::space::block::{Address, Block, Region, Scan, count_of, pairs_of};
use crate::space::block_source;
use crate::space::layout::Layout;
use crate::space::size_class::BLOCK;
use crate::space::slot::Slot;
use core::ptr::null;
use vellum_pages::PAGE;
use vellum_pages::round_up;

/// The answer to a thread that needs a block.
pub(crate) enum Supply {
    Block(&'static Block),
    /// It is time to collect.
    Collect,
    /// There is no memory.
    Full,
}

impl Heap {
    fn may_collect(&self, collected: bool) -> bool {
        self.held == 0 && !collected && self.is_welcome()
    }

    /// A block for `slot`; `collected`: a collection was already made for it.
    pub(crate) fn supply(&mut self, slot: usize, collected: bool) -> Supply {
        let plan = plan::of(self);
        self.check_room();
        if self.sizing.used >= self.room_now() && self.may_collect(collected) {
            return Supply::Collect;
        }
        // SAFETY: null, or a descriptor.
        if let Some(block) = unsafe { self.space.slots[slot].roomy.as_ref() }
            && plan.may_fill_holes(self)
        {
            self.space.slots[slot].roomy = block.next.get();
            plan.block_goes_out(self, block);
            block.next.set(null());
            if self.counts_blocks() {
                self.hand_out((block.count.get() - block.allocated_count()) as usize * block.size.get());
            }
            return Supply::Block(block);
        }
        if !self.may_have_block() && self.may_collect(collected) {
            return Supply::Collect;
        }
        if self.space.bytes + BLOCK > self.limit() {
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
        if self.sizing.used >= self.sizing.watch.check_at() {
            self.look_again();
        }
    }

    /// Checks, in the middle of a large budget, whether the memory that it was given for is still available;
    /// the collection comes sooner if not.
    #[cold]
    fn look_again(&mut self) {
        let used = self.sizing.used;
        let room = plan::of(self).room_now(self);
        self.sizing.room = self.sizing.room.min(room.max(used));
        self.sizing.watch.check_after(used);
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
        let limit = self.limit();
        let over = self.space.bytes.checked_add(extent_bytes).is_none_or(|bytes| bytes > limit);
        let is_due = self.sizing.used > 0
            && (self.sizing.used.saturating_add(extent_bytes) > self.room_now()
                || self.is_large_enough(extent_bytes));
        if (over || is_due) && self.may_collect(collected) {
            return Supply::Collect;
        }
        // The pool's blocks are resident. With them, too, the limit holds, and the heap does not exceed its
        // budget.
        let most = plan::of(self).most_with_pool(self, limit);
        while !over
            && let Some(&unit) = self.space.pool.last()
            && self.space.bytes + self.space.pool.len() * BLOCK + extent_bytes > most
        {
            self.space.pool.truncate(self.space.pool.len() - 1);
            block_source::give_back(unit);
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
        self.space.blocks.reserve(1).ok()?;
        let block = self.space.descriptors.take(pairs_of(1))?;
        let zero = scan != Scan::Nothing;
        let Some(base) = block_source::take(extent_bytes, zero) else {
            self.space.descriptors.put(block);
            return None;
        };
        if !self.space.table.enter(block, base, extent_bytes) {
            self.space.descriptors.put(block);
            block_source::give_back(base);
            return None;
        }
        block.begin(base, round_up(bytes, size_of::<usize>()), 1, 0, scan, layout);
        block.extent.set(extent_bytes);
        block.take_run(0, extent_bytes);
        self.space.blocks.push(core::ptr::from_ref(block) as Address).ok()?;
        plan::of(self).block_came(self, block);
        self.grew(extent_bytes);
        self.hand_out(extent_bytes);
        Some(block)
    }

    fn new_block(&mut self, slot: usize) -> Option<&'static Block> {
        let Slot { size, scan, layout, kept, .. } = self.space.slots[slot];
        let count = count_of(size);
        self.space.blocks.reserve(1).ok()?;
        let block = self.space.descriptors.take(pairs_of(count))?;
        let unit = self.take_unit();
        let entered = unit.filter(|&unit| self.space.table.enter(block, unit, BLOCK));
        let Some(unit) = entered else {
            self.space.descriptors.put(block);
            if let Some(unit) = unit {
                block_source::give_back(unit);
            }
            return None;
        };
        block.begin(unit, size, count, slot as u16, scan, layout);
        if kept {
            block.region.set(Region::Kept);
        }
        self.space.blocks.push(core::ptr::from_ref(block) as Address).ok()?;
        plan::of(self).block_came(self, block);
        self.grew(BLOCK);
        if self.counts_blocks() {
            self.hand_out(BLOCK);
        }
        Some(block)
    }
}
