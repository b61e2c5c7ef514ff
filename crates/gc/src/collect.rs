//! A collection, from the first look at the roots to the list of blocks with room.
//!
//! ```text
//! prepare   loader's list, room in the lists      (locks may be taken: the world still runs)
//! stop      every thread
//! retire    the caller's runs go back, freed objects go; others' runs are kept
//! roots     static data, stacks, kept objects
//! trace     finalizers and links too
//! survey    bitmaps: what is marked is what is allocated; empty blocks go to the pool
//! go on
//! return    what the pool holds beyond its need
//! ```
//!
//! Nothing in between takes a lock: a thread may have been stopped while it held the page layer's or `malloc`'s.
//!
//! There is no sweep of objects: the survey reads bitmaps only (one pair of words for 64 objects), and whoever allocates
//! finds runs of free objects in them. Free memory is touched when it is used again and not before.

use crate::block::{Block, Scan};
use crate::class::BLOCK;
use crate::config::STACK_KEPT;
use crate::finalize;
use crate::heap::{self, Address, Heap};
use crate::mark::Marker;
use crate::thread::{self, Thread};
use crate::{stop, tls};
use core::ptr::null;
use core::sync::atomic::Ordering;
use vellum_pages::{Pages, Severity};
use vellum_sys::{clock, map};

/// What dead objects are overwritten with in poison mode: no address, as none has these upper bits.
const POISON: u8 = 0xdb;
/// Free blocks kept beyond what will be used before the next collection.
const SPARE_BLOCKS: usize = 8;
/// Bytes from which what is given back, if it is also more than half of what stays, is flushed from the page layer's cache.
const FLUSH_MIN: usize = 8 << 20;

/// What the survey found alive.
#[derive(Clone, Copy, Default)]
struct Survey {
    /// Bytes of objects.
    live: usize,
    /// Bytes of blocks and large objects.
    bytes: usize,
}

/// Collects, for `thread`, which is inside and holds the lock. False, and nothing was done, if memory for the lists is out.
pub(crate) fn collect(heap: &mut Heap, thread: &'static Thread) -> bool {
    let blocks = heap.blocks.len();
    if heap.roots.refresh().is_err()
        || heap.pool.reserve(blocks).is_err()
        || heap.doomed.reserve(blocks).is_err()
    {
        return false;
    }
    let mut registers = [0; 6];
    let low = tls::spill(&mut registers).min(registers.as_ptr() as usize);
    thread.stack_low.store(low, Ordering::Relaxed);
    let before = clock::now_ns();
    stop::world();
    retire(heap);
    for &block in heap.blocks.iter() {
        // SAFETY: the list has the addresses of descriptors, which are never unmapped.
        unsafe { (*(block as *const Block)).begin_trace() };
    }
    for other in thread::known().filter(|other| !other.is_current()) {
        other.keep_runs(heap.slots_in_use());
    }
    let (rooted, marked) = trace(heap);
    let survey = survey(heap);
    stop::go_on();
    let after = clock::now_ns();
    core::hint::black_box(&registers);

    heap.stats.collections += 1;
    heap.stats.live_bytes = survey.live as u64;
    heap.stats.pause_ns_last = after - before;
    heap.stats.pause_ns_longest = heap.stats.pause_ns_longest.max(after - before);
    heap.stats.pause_ns_total += after - before;
    heap.stats.root_ns_total += rooted - before;
    heap.stats.mark_ns_total += marked - rooted;
    heap.stats.sweep_ns_total += after - marked;
    heap.bytes = survey.bytes;
    heap.set_room(survey.live);
    give_back(heap);
    true
}

/// Takes back what the caller has not used of its runs, and what users have freed. Other threads may have been stopped in the
/// middle of an allocation, and keep theirs ([`Thread::keep_runs`](crate::thread::Thread::keep_runs)).
pub(crate) fn retire(heap: &mut Heap) {
    if let Some(thread) = thread::known().find(|thread| thread.is_current()) {
        thread.retire_runs(heap.slots_in_use());
    }
    for &object in heap.freed.iter() {
        if let Some(block) = heap.block_starting(object) {
            let index = block.index_at(object - block.base.get()).0;
            block.clear_allocated(index, index + 1);
        }
    }
    heap.freed.truncate(0);
}

/// Marks everything alive; returns when the roots had been looked through, and when all had.
fn trace(heap: &mut Heap) -> (u64, u64) {
    let mut marker = Marker::new(&heap.space, &heap.slots, heap.stack, heap.config.only_starts);
    for range in heap.roots.each() {
        // SAFETY: the loader names segments that are mapped and readable; the user vouches for what was added.
        unsafe { marker.words(range.start, range.end, false) };
    }
    for thread in thread::known() {
        let (start, end) = thread.data.get();
        let low = thread.stack_low.load(Ordering::Acquire) & !7;
        // SAFETY: the thread is stopped, blocked or this one: its stack from there up, and its static data, are mapped.
        unsafe {
            marker.words(low, thread.stack_high.get(), false);
            marker.words(start, end, false);
        }
        if !thread.is_current() {
            thread.next_objects(heap.slots_used).for_each(|object| marker.root(object));
        }
    }
    heap.kept.each(|object, _| marker.root(object));
    finalize::mark_roots(&heap.finalizers, &mut marker);
    let rooted = clock::now_ns();
    marker.drain(&heap.blocks);
    finalize::clear_links(&mut heap.links, false, &marker);
    if heap.finalizers.len() > 0 {
        heap.due += finalize::find_due(&mut heap.finalizers, &mut marker, &heap.blocks);
    }
    finalize::clear_links(&mut heap.links, true, &marker);
    heap.stats.marked_objects_last = marker.marked;
    heap.stats.overflows += marker.overflows;
    let touched = marker.deepest * size_of::<usize>();
    if touched > STACK_KEPT {
        let start = heap.stack.start as usize + STACK_KEPT;
        // SAFETY: the stack is empty. A refusal only means that the pages stay.
        let _ = unsafe { map::flush(start, vellum_sys::round_up(touched - STACK_KEPT, vellum_sys::PAGE)) };
    }
    (rooted, clock::now_ns())
}

/// Turns marks into allocation bits, sorts blocks by whether they have room, and lets go of empty ones.
fn survey(heap: &mut Heap) -> Survey {
    for slot in &mut heap.slots[..heap.slots_used] {
        slot.roomy = null();
    }
    let mut found = Survey::default();
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
        let live = settle(block, heap.config.poison);
        if live == 0 {
            heap.blocks[index] = 0;
            drop_block(heap, block);
            continue;
        }
        kept += 1;
        found.live += live as usize * block.size.get();
        found.bytes += block.extent.get();
        if live < block.count.get() {
            let slot = &mut heap.slots[usize::from(block.slot.get())];
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
    found
}

/// Makes a block's marks its allocation bits; returns how many objects are alive.
fn settle(block: &Block, poison: bool) -> u32 {
    let mut live = 0;
    for pair in 0..block.pairs.get() {
        let allocated = block.allocated(pair).get();
        let marks = block.marks(pair).get() & allocated;
        block.allocated(pair).set(marks);
        live += marks.count_ones();
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
    live
}

/// Lets go of a block without objects. Its pages are given back later.
fn drop_block(heap: &mut Heap, block: &'static Block) {
    let (base, extent) = (block.base.get(), block.extent.get());
    heap.space.leave(base, extent);
    let is_small = block.slot.get() != 0;
    heap.descriptors.put(block);
    // Room was made for both before the world was stopped.
    let list = if is_small { &mut heap.pool } else { &mut heap.doomed };
    let pushed = list.push(base);
    debug_assert!(pushed.is_ok());
}

/// Gives back what is not needed before the next collection.
fn give_back(heap: &mut Heap) {
    for &extent in heap.doomed.iter() {
        heap::give_back(extent);
    }
    heap.doomed.truncate(0);
    let needed = (heap.room / BLOCK + SPARE_BLOCKS).min(heap.pool.len());
    // What was not needed before the last collection either: a heap that swings keeps its blocks.
    let surplus = heap.pool.len() - needed;
    let mut given = surplus.min(heap.surplus);
    heap.surplus = surplus - given;
    // The heap has shrunk for good: even what would be used soon is given back, and its frames with it.
    let has_shrunk = given * BLOCK > (heap.bytes / 2).max(FLUSH_MIN);
    if has_shrunk {
        given = heap.pool.len().saturating_sub(SPARE_BLOCKS);
    }
    // The oldest are given back: the newest are the warmest.
    for index in 0..given {
        heap::give_back(heap.pool[index]);
    }
    heap.pool.copy_within(given.., 0);
    let kept = heap.pool.len() - given;
    heap.pool.truncate(kept);
    if has_shrunk {
        Pages::global().trim(Severity::Flush);
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
    heap::give_back(base);
}
