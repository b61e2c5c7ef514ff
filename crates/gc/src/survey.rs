//! After a trace: what is marked is what is allocated; blocks are sorted by whether they have room, empty ones are let go.
//!
//! There is no sweep of objects: the survey reads bitmaps only (one pair of words for 64 objects), and whoever allocates
//! finds runs of free objects in them. Free memory is touched when it is used again and not before.

use crate::block::{Block, Scan};
use crate::class::BLOCK;
use crate::config::Plan;
use crate::evacuate::{STEP_FULL, STEPS};
use crate::ground;
use crate::heap::{Address, Heap};
use crate::sizing::Found;
use crate::young::Census;
use core::ptr::null;
use vellum_pages::{Discard, Pages, Severity};

/// What dead objects are overwritten with in poison mode: no address, as none has these upper bits.
const POISON: u8 = 0xdb;
/// Free blocks kept beyond what will be used before the next collection.
const SPARE_BLOCKS: usize = 8;
/// Under `appel`, one part of so many of what is new should live on and be copied.
const COPIES_PART: usize = 4;
/// Bytes from which what is given back, if it is also more than half of what stays, is flushed from the page layer's cache.
const FLUSH_MIN: usize = 8 << 20;

/// Turns marks into allocation bits, sorts blocks by whether they have room, and lets go of empty ones.
pub(crate) fn survey(heap: &mut Heap) -> Found {
    for slot in &mut heap.slots[..] {
        slot.roomy = null();
    }
    let stays = heap.stays();
    let mut found = Found::default();
    let mut kept = 0;
    // From the last to the first, so that each slot's list begins with its oldest block.
    for index in (0..heap.blocks.len()).rev() {
        // SAFETY: the list has the addresses of descriptors, which are never unmapped.
        let block: &'static Block = unsafe { &*(heap.blocks[index] as *const Block) };
        if block.extent.get() == 0 {
            heap.descriptors.put(block);
            heap.blocks[index] = 0;
            continue;
        }
        let was_evacuated = block.evacuating.get();
        let census = settle(block, heap.config.poison);
        if was_evacuated && census.live > 0 {
            heap.stats.note_promoted(block, census.live);
        }
        let is_small = block.slot.get() != 0;
        let slot = &mut heap.slots[usize::from(block.slot.get())];
        let size = block.size.get();
        slot.count_young(block, census);
        let live = census.live;
        if live == 0 {
            heap.blocks[index] = 0;
            drop_block(heap, block);
            continue;
        }
        kept += 1;
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
            block.next.set(slot.roomy);
            slot.roomy = block;
        }
    }
    let mut to = 0;
    for index in 0..heap.blocks.len() {
        if heap.blocks[index] != 0 {
            heap.blocks[to] = heap.blocks[index];
            to += 1;
        }
    }
    debug_assert_eq!(to, kept);
    heap.blocks.truncate(to);
    for slot in &mut heap.slots[..] {
        let (met, to_copy) = slot.learn();
        found.young += met;
        found.young_to_copy += to_copy;
    }
    found
}

/// Whether the next major collection empties a block of so many objects alive, where others stay.
fn is_thin(block: &Block, live: u32) -> bool {
    block.slot.get() != 0 && live as usize * STEPS < STEP_FULL * block.count.get() as usize
}

/// Makes a block's marks its allocation bits, those of what has moved excepted.
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
                let object = block.address(crate::block::Index(pair * 64 + dead.trailing_zeros()));
                dead &= dead - 1;
                // SAFETY: nothing that is alive refers to the object.
                unsafe {
                    core::ptr::with_exposed_provenance_mut::<u8>(object)
                        .write_bytes(POISON, block.size.get());
                }
            }
        }
    }
    found
}

/// Lets go of a block without objects. Its pages are given back later.
pub(crate) fn drop_block(heap: &mut Heap, block: &'static Block) {
    let (base, extent) = (block.base.get(), block.extent.get());
    heap.space.leave(base, extent);
    let is_small = block.slot.get() != 0;
    heap.descriptors.put(block);
    // Room was made for both before the world was stopped.
    let list = if is_small { &mut heap.pool } else { &mut heap.doomed };
    let pushed = list.push(base);
    debug_assert!(pushed.is_ok());
}

/// Gives back what is not needed before the next collection, after one that was a major one or not.
pub(crate) fn give_back(heap: &mut Heap, is_major: bool) {
    for &extent in heap.doomed.iter() {
        ground::give_back(extent);
    }
    heap.doomed.truncate(0);
    let needed = (heap.blocks_needed() + SPARE_BLOCKS).min(heap.pool.len());
    // What was not needed before the last collection either: a heap that swings keeps its blocks.
    let surplus = heap.pool.len() - needed;
    // Where memory is short it goes at once, and where somebody tries what telling the kernel is worth.
    let mode = Pages::global().discard_mode();
    let at_once = heap.watch.is_short() || mode != Discard::Auto;
    let mut given = if at_once { surplus } else { surplus.min(heap.surplus) };
    heap.surplus = surplus - given;
    // The heap has shrunk for good: even what would be used soon is given back, and its frames with it.
    // The collection after that may have moved what was left, and what it moved from is not needed either.
    let shrinks = given * BLOCK > heap.bytes_vacated_usually().max(FLUSH_MIN);
    let has_shrunk = core::mem::replace(&mut heap.shrinks, shrinks) || shrinks;
    if has_shrunk {
        given = heap.pool.len().saturating_sub(SPARE_BLOCKS);
    }
    // The oldest are given back: the newest are the warmest.
    for index in 0..given {
        ground::give_back(heap.pool[index]);
    }
    heap.pool.copy_within(given.., 0);
    let kept = heap.pool.len() - given;
    heap.pool.truncate(kept);
    heap.vacate_unused(is_major);
    heap.tell_left();
    if has_shrunk && mode == Discard::Auto {
        Pages::global().trim(Severity::Flush);
    }
}

impl Heap {
    /// Free blocks that will be used before the end of the next collection.
    fn blocks_needed(&self) -> usize {
        let copies = if self.config.plan == Plan::Appel { self.room / COPIES_PART } else { 0 };
        (self.room + copies) / BLOCK
    }

    /// Bytes that may be found unneeded without the heap having shrunk: where all that is old moves, its room is free after that.
    fn bytes_vacated_usually(&self) -> usize {
        if self.config.plan == Plan::Appel { self.bytes * 2 } else { self.bytes / 2 }
    }
}

/// Makes a large object that its user frees vanish at once. Its descriptor waits for the next survey.
pub(crate) fn free_large(heap: &mut Heap, block: &'static Block) {
    let (base, extent): (Address, usize) = (block.base.get(), block.extent.get());
    heap.space.leave(base, extent);
    heap.bytes -= extent;
    heap.used = heap.used.saturating_sub(extent);
    block.extent.set(0);
    block.clear_allocated(0, 1);
    block.scan.set(Scan::Nothing);
    ground::give_back(base);
}
