//! The sweep after a trace: marks become allocation bits, blocks with room are listed, and empty ones are
//! freed.
//!
//! Objects are not swept one by one: the sweep reads only the bitmaps (one pair of words for 64 objects),
//! in which threads later find runs of free objects. Free memory is not touched before it is used again.

use crate::heap::Heap;
use crate::plan::contract::Plan;
use crate::sizing::policy::Found;
use crate::space::block::{Block, Scan};
use crate::space::size_class::BLOCK;
use crate::space::survivor_statistics::{Census, STEP_FULL, STEPS};
use vellum_pages::{Discard, Pages, Severity};

/// Poison mode overwrites dead objects with this: no address, as none has these upper bits.
const POISON: u8 = 0xdb;
/// Spare free blocks that are kept besides the needed ones.
const SPARE_BLOCKS: usize = 8;
/// The page layer's cache is flushed if this many bytes are given back, and more than half of the rest.
const FLUSH_MIN: usize = 8 << 20;

/// Turns marks into allocation bits, sorts blocks by whether they have room, and frees empty ones.
/// Dense blocks `stay` under a plan that moves.
pub(crate) fn sweep(heap: &mut Heap, stays: bool) -> Found {
    for slot in &mut heap.space.slots[..] {
        slot.roomy = None;
    }
    let mut found = Found::default();
    let mut kept = heap.space.blocks.len();
    // From the last to the first, so that each slot's list begins with its oldest block.
    for index in (0..heap.space.blocks.len()).rev() {
        let block = heap.space.blocks[index];
        if block.extent.get() == 0 {
            heap.space.descriptors.put(block);
            continue;
        }
        let was_evacuated = block.evacuating.get();
        let census = settle(block, heap.config.poison);
        if was_evacuated && census.live > 0 {
            heap.stats.note_promoted(block, census.live);
        }
        let is_small = block.slot.get() != 0;
        let slot = &mut heap.space.slots[usize::from(block.slot.get())];
        let size = block.size.get();
        slot.count_young(block, census);
        let live = census.live;
        if live == 0 {
            drop_block(heap, block);
            continue;
        }
        // They move to the end of the list.
        kept -= 1;
        heap.space.blocks[kept] = block;
        found.live += live as usize * size;
        if block.scan.get() != Scan::Nothing {
            found.scanned += live as usize * size;
        }
        if is_small && slot.is_sparse(live as usize, block.count.get() as usize)
            || stays && is_thin(block, live)
        {
            found.sparse += live as usize * size;
        }
        found.bytes += block.extent.get();
        if live < block.count.get() {
            slot.put_roomy(block);
        }
    }
    heap.space.blocks.copy_within(kept.., 0);
    let left = heap.space.blocks.len() - kept;
    heap.space.blocks.truncate(left);
    for slot in &mut heap.space.slots[..] {
        let (met, to_copy) = slot.learn();
        found.young += met;
        found.young_to_copy += to_copy;
    }
    found
}

/// Returns whether the next major collection empties a block of `live` live objects, where dense ones stay.
fn is_thin(block: &Block, live: u32) -> bool {
    block.slot.get() != 0 && live as usize * STEPS < STEP_FULL * block.count.get() as usize
}

/// Makes a block's marks its allocation bits, without those of objects that have moved.
pub(crate) fn settle(block: &Block, poison: bool) -> Census {
    let mut found = Census::default();
    let evacuated = block.evacuating.replace(false);
    // Whether the last object of the words before was reached.
    let mut last = 0;
    for pair in 0..block.pairs.get() {
        let allocated = block.allocated(pair).get();
        let reached = block.marks(pair).get() & allocated;
        let marks = if evacuated { reached & block.pins(pair).get() } else { reached };
        block.allocated(pair).set(marks);
        found.allocated += allocated.count_ones();
        found.reached += reached.count_ones();
        found.runs += (reached & !(reached << 1 | last)).count_ones();
        last = reached >> (u64::BITS - 1);
        found.live += marks.count_ones();
        if poison {
            let mut dead = allocated & !marks;
            while dead != 0 {
                let object = block.address(crate::space::block::Index(pair * 64 + dead.trailing_zeros()));
                dead &= dead - 1;
                // SAFETY: the object is dead: no live object refers to it, and the world is stopped.
                unsafe {
                    object.ptr::<u8>().write_bytes(POISON, block.size.get());
                }
            }
        }
    }
    found
}

/// Frees a block without objects. Its pages are given back later.
pub(crate) fn drop_block(heap: &mut Heap, block: &'static Block) {
    let base = block.base.get();
    heap.space.table.leave(block.span());
    let is_small = block.slot.get() != 0;
    heap.space.descriptors.put(block);
    // Room was made for both before the world was stopped.
    let list = if is_small { &mut heap.space.pool } else { &mut heap.space.doomed };
    let pushed = list.push(base);
    debug_assert!(pushed.is_ok());
}

/// Gives back memory not needed before the next collection; `is_major`: the last one was a major one.
pub(crate) fn give_back(plan: &mut dyn Plan, heap: &mut Heap, is_major: bool) {
    let keep = plan.kept(heap);
    for &extent in heap.space.doomed.iter() {
        heap.space.source.give_back(extent);
    }
    heap.space.doomed.truncate(0);
    let needed = (keep.needed + SPARE_BLOCKS).min(heap.space.pool.len());
    // Only what was not needed before the last collection either: a heap that swings keeps its blocks.
    let surplus = heap.space.pool.len() - needed;
    // At once where memory is short, and where the user tries ways of discarding pages.
    let mode = Pages::global().discard_mode();
    let at_once = heap.sizing.watch.is_short() || mode != Discard::Auto;
    let mut given = if at_once { surplus } else { surplus.min(heap.space.surplus) };
    heap.space.surplus = surplus - given;
    // The heap has shrunk for good: even blocks that would be used soon are given back, with their frames.
    // The next collection may move the rest: the blocks it vacates are not needed either.
    let shrinks = given * BLOCK > keep.swings.max(FLUSH_MIN);
    let has_shrunk = core::mem::replace(&mut heap.space.shrinks, shrinks) || shrinks;
    if has_shrunk {
        given = heap.space.pool.len().saturating_sub(SPARE_BLOCKS);
    }
    // The oldest are given back: the newest are the warmest.
    for index in 0..given {
        heap.space.source.give_back(heap.space.pool[index]);
    }
    heap.space.pool.copy_within(given.., 0);
    let kept = heap.space.pool.len() - given;
    heap.space.pool.truncate(kept);
    heap.vacate_unused(is_major);
    plan.gave_back(heap);
    if has_shrunk && mode == Discard::Auto {
        Pages::global().trim(Severity::Flush);
        heap.mark_bytes.flush(&heap.space.table);
    }
}

/// Frees a large object's memory at once, when its user frees it. Its descriptor waits for the next sweep.
pub(crate) fn free_large(heap: &mut Heap, block: &'static Block) {
    let (base, extent) = (block.base.get(), block.extent.get());
    heap.space.table.leave(block.span());
    heap.space.bytes -= extent;
    heap.sizing.used = heap.sizing.used.saturating_sub(extent);
    block.extent.set(0);
    block.clear_allocated(0, 1);
    block.scan.set(Scan::Nothing);
    heap.space.source.give_back(base);
}
