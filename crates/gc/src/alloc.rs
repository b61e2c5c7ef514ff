//! Allocation beyond the inline functions: the next run, the next block, a collection, large objects.

use crate::appel::minor;
use crate::block::{Block, Scan};
use crate::budget::Budget;
use crate::class::{
    ALIGN_MAX, ATOMIC_FIRST, BLOCK, CLASS_LAST, GRANULE, SMALL_MAX, TYPED_FIRST, WORD, bytes_of, class_of,
};
use crate::collect as collection;
use crate::config::Config;
use crate::cycle::{self, Progress};
use crate::finalize;
use crate::frames;
use crate::freed;
use crate::heap::{Heap, Supply};
use crate::layout::Layout;
use crate::procedure::Hook;
use crate::strict;
use crate::thread::{self, Thread};
use crate::tls;
use core::ptr::null;
use vellum_pages::{BLOCK_MAX, PAGE};

/// What is called when there is no memory: `vel_gc_full_fn` of the header.
pub type FullFn = unsafe extern "C" fn(bytes: usize) -> *mut core::ffi::c_void;

static ON_FULL: Hook<FullFn> = Hook::none();

/// Sets what is called when there is no memory; returns what was.
pub fn on_full(hook: Option<FullFn>) -> Option<FullFn> {
    ON_FULL.set(hook)
}

/// An untyped object of `bytes` bytes, reading zero; null if there is no memory.
pub fn alloc(bytes: usize) -> *mut u8 {
    if bytes <= SMALL_MAX { small(class_of(bytes), bytes) } else { large(bytes, Scan::Words, null()) }
}

/// An object without pointers, contents undefined; null if there is no memory.
pub fn alloc_atomic(bytes: usize) -> *mut u8 {
    if bytes <= SMALL_MAX {
        small(ATOMIC_FIRST + class_of(bytes), bytes)
    } else {
        large(bytes, Scan::Nothing, null())
    }
}

/// An object of a type, reading zero; null if there is no memory.
pub fn alloc_typed(layout: &'static Layout) -> *mut u8 {
    small(layout.slot.get() as usize, layout.bytes.get() as usize)
}

/// The same, with the ordinary case inlined: `vel_gc_new` of the header.
#[inline]
pub fn alloc_typed_inline(layout: &'static Layout) -> *mut u8 {
    let run = tls::run(layout.slot.get() as usize);
    let bytes = layout.bytes.get() as usize;
    // Read and written once and in order: a collection may stop the thread in between, and relies on it.
    // SAFETY: the thread's own run, or one that is empty and so is not written.
    unsafe {
        let object = run.next.as_ptr().read_volatile();
        if run.end.get().wrapping_sub(object) >= bytes {
            run.next.as_ptr().write_volatile(object + bytes);
            return core::ptr::with_exposed_provenance_mut(object);
        }
    }
    alloc_typed(layout)
}

/// An array of `count` elements of a type, reading zero; null if there is no memory.
pub fn alloc_array(layout: &'static Layout, count: usize) -> *mut u8 {
    let Some(bytes) = (layout.words.get() as usize * WORD).checked_mul(count.max(1)) else {
        return full(usize::MAX);
    };
    if bytes > SMALL_MAX {
        let scan = layout.scan();
        let object = large(bytes, scan, layout);
        if scan == Scan::Nothing && !object.is_null() {
            // SAFETY: a new object of so many bytes. Without pointers it came as it was.
            unsafe { object.write_bytes(0, bytes) };
        }
        return object;
    }
    let class = class_of(bytes);
    let slot = match layout.array_slots[class].get() {
        0 => {
            let Some(thread) = thread::attached() else { return full(bytes) };
            let slot = with_heap(thread, |heap| heap.slot_of(layout, class));
            usize::from(slot)
        }
        slot => usize::from(slot),
    };
    if slot < TYPED_FIRST && layout.scan() == Scan::Procedure {
        // There are no more slots, and an untyped one would not call the procedure: a large object knows its type itself.
        return large(bytes, Scan::Procedure, layout);
    }
    small(slot, bytes)
}

/// An object aligned to `align`, a power of two up to [`ALIGN_MAX`]; null if it is not, or there is no memory.
pub fn alloc_aligned(bytes: usize, align: usize, atomic: bool) -> *mut u8 {
    if !align.is_power_of_two() || align > ALIGN_MAX {
        return core::ptr::null_mut();
    }
    let bytes = bytes.max(1);
    // Objects of a class lie at multiples of its size from a block's start, which is aligned to all that is served.
    let class = (class_of(bytes.min(SMALL_MAX))..=CLASS_LAST)
        .find(|&class| bytes_of(class).is_multiple_of(align) && bytes <= bytes_of(class));
    match (class, atomic) {
        (Some(class), false) => small(class, bytes),
        (Some(class), true) => small(ATOMIC_FIRST + class, bytes),
        (None, false) => large(bytes, Scan::Words, null()),
        (None, true) => large(bytes, Scan::Nothing, null()),
    }
}

const _: () = assert!(BLOCK.is_multiple_of(ALIGN_MAX) && ALIGN_MAX.is_multiple_of(GRANULE));

/// Runs `work` inside the collector, with the heap's lock.
pub(crate) fn with_heap<R>(thread: &'static Thread, work: impl FnOnce(&mut Heap) -> R) -> R {
    thread.expect_not_collecting();
    thread.enter();
    let mut heap = thread.lock();
    let result = work(&mut heap);
    drop(heap);
    thread.leave();
    result
}

/// Starts the heap with the defaults if it has not started.
pub(crate) fn ensure_started(heap: &mut Heap) -> bool {
    heap.started || heap.start(Config::DEFAULT)
}

/// An object of `slot`.
pub(crate) fn small(slot: usize, bytes: usize) -> *mut u8 {
    let Some(thread) = thread::attached() else { return full(bytes) };
    thread.expect_not_collecting();
    thread.enter();
    let before = collections(thread);
    if strict::is_on() && strict::is_time(thread, Some(slot)) {
        strict::collect_eagerly(&mut thread.lock(), thread);
    }
    let object = match take(thread, slot) {
        Some(object) => Some(object),
        None if let Some(object) = freed::again(thread, slot) => Some(object),
        None if refill(thread, slot) => take(thread, slot),
        None => None,
    };
    let collected = collections(thread) != before;
    frames::hand_over(thread, object.unwrap_or(0));
    thread.leave();
    finish(object, bytes, collected)
}

/// How often this thread has collected.
fn collections(thread: &Thread) -> u32 {
    thread.collections.get()
}

/// What is due after an allocation: the hook if there is no memory, finalizers if it has collected.
#[inline]
fn finish(object: Option<usize>, bytes: usize, collected: bool) -> *mut u8 {
    if collected {
        frames::holding(&[object.unwrap_or(0)], finalize::run_after_collection);
    }
    match object {
        Some(object) => core::ptr::with_exposed_provenance_mut(object),
        None => full(bytes),
    }
}

#[cold]
fn full(bytes: usize) -> *mut u8 {
    // SAFETY: the user vouches that it may be called.
    ON_FULL.get().map_or(core::ptr::null_mut(), |hook| unsafe { hook(bytes).cast() })
}

/// The next object of the thread's run of `slot`. The size is the block's, as the slot's is behind the lock.
#[inline]
fn take(thread: &Thread, slot: usize) -> Option<usize> {
    let (run, cursor) = (&thread.runs[slot], &thread.cursors[slot]);
    let object = run.next.get();
    if object == run.end.get() {
        return None;
    }
    // SAFETY: a run that is not empty has a block; descriptors are never unmapped.
    let size = unsafe { (*cursor.block.get()).size.get() };
    run.next.set(object + size);
    Some(object)
}

/// Gets the thread a run of `slot`; false if there is no memory.
fn refill(thread: &'static Thread, slot: usize) -> bool {
    let cursor = &thread.cursors[slot];
    // SAFETY: null, or a descriptor.
    if let Some(block) = unsafe { cursor.block.get().as_ref() }
        && next_run(thread, slot, block)
    {
        return true;
    }
    cursor.block.set(null());
    let mut collected = false;
    loop {
        let Some(block) = next_block(thread, slot, &mut collected) else { return false };
        cursor.block.set(block);
        cursor.index.set(0);
        // Without the lock: its release would wait until all that is cleared has left the store buffer.
        if next_run(thread, slot, block) {
            return true;
        }
    }
}

/// A block with room for `slot`, after a collection if it is time for that; `None` if there is no memory.
fn next_block(thread: &'static Thread, slot: usize, collected: &mut bool) -> Option<&'static Block> {
    let mut heap = thread.lock();
    if !ensure_started(&mut heap) {
        return None;
    }
    heap.count_taken(thread);
    loop {
        slice_if_due(&mut heap, thread);
        match heap.supply(slot, *collected) {
            Supply::Block(block) => return Some(block),
            Supply::Collect => *collected |= collect_in_need(&mut heap, thread),
            Supply::Full => return None,
        }
    }
}

/// Goes on with a collection in slices, or begins one, if it is time.
fn slice_if_due(heap: &mut Heap, thread: &'static Thread) {
    if heap.is_leaving {
        cycle::let_go(heap, Budget::new(heap.config.slice_ns, false));
    } else if heap.is_slice_due() {
        let budget = Budget::new(heap.config.slice_ns, false);
        let progress = thread.standing_here(|| cycle::step(heap, thread, budget, false));
        note(thread, progress);
    }
}

/// Notes that a collection has ended, if it has: finalizers may be due.
pub(crate) fn note(thread: &Thread, progress: Progress) {
    if progress == Progress::Done {
        ended(thread);
    }
}

fn ended(thread: &Thread) {
    thread.collections.set(thread.collections.get().wrapping_add(1));
}

/// Makes room: ends the collection that is on, or else makes one. Whether it was a whole one: there is no more to be had.
fn collect_in_need(heap: &mut Heap, thread: &'static Thread) -> bool {
    if heap.cycle.is_some() {
        let progress = thread.standing_here(|| cycle::finish(heap, thread));
        note(thread, progress);
        // One that has not marked anything yet was dropped.
        if progress == Progress::Done {
            return false;
        }
    }
    if heap.is_minor_next() && thread.standing_here(|| minor::collect(heap, thread)) {
        ended(thread);
        if !heap.is_major_due() {
            return false;
        }
    }
    heap.stats.unsliced += u64::from(heap.wants_slices_in_vain() || heap.wants_minors_in_vain());
    collect_now(heap, thread);
    true
}

pub(crate) fn collect_now(heap: &mut Heap, thread: &'static Thread) -> bool {
    let done = thread.standing_here(|| collection::collect(heap, thread));
    ended(thread);
    done
}

/// Makes the block's next free objects the thread's run, cleared if they must be; false if there are none.
#[inline]
fn next_run(thread: &Thread, slot: usize, block: &Block) -> bool {
    let (run, cursor) = (&thread.runs[slot], &thread.cursors[slot]);
    let size = block.size.get();
    let Some((from, mut to)) = block.take_run(cursor.index.get(), RUN_MAX) else { return false };
    if strict::is_on() {
        let end = from + strict::objects_until_time(thread, slot, to - from);
        block.clear_allocated(end, to);
        to = end;
    }
    cursor.index.set(to);
    if cycle::is_white() {
        block.clear_marks(from, to);
    }
    let start = block.base.get() + from as usize * size;
    let bytes = (to - from) as usize * size;
    if !(ATOMIC_FIRST..TYPED_FIRST).contains(&slot) {
        // SAFETY: free objects of a block that this thread allocates from.
        unsafe { clear(start, bytes) };
    }
    run.next.set(start);
    run.end.set(start + bytes);
    thread.uncounted.set(thread.uncounted.get() + bytes);
    true
}

/// Bytes of a run at most. Of a block of a size that is seldom asked for no more is touched than is used, and what is cleared is in the nearest cache
/// when it is used.
const RUN_MAX: usize = PAGE;

/// Clears `bytes` bytes from `start`, whole granules.
///
/// # Safety
/// Nobody else uses them.
#[inline(always)]
unsafe fn clear(start: usize, bytes: usize) {
    /// A hole of so many bytes is cleared before a call would have begun to.
    const FEW: usize = 8 * GRANULE;
    let start = core::ptr::with_exposed_provenance_mut::<u128>(start);
    if bytes > FEW {
        // SAFETY: by this function's condition.
        return unsafe { start.cast::<u8>().write_bytes(0, bytes) };
    }
    for granule in 0..bytes / GRANULE {
        // SAFETY: by this function's condition. Volatile: or it would be made the very call that it replaces.
        unsafe { start.add(granule).write_volatile(0) };
    }
}

/// An object with pages of its own.
fn large(bytes: usize, scan: Scan, layout: *const Layout) -> *mut u8 {
    if bytes > BLOCK_MAX {
        return full(bytes);
    }
    let Some(thread) = thread::attached() else { return full(bytes) };
    let mut collected = false;
    let object = with_heap(thread, |heap| {
        if !ensure_started(heap) {
            return None;
        }
        if strict::is_on() && strict::is_time(thread, None) {
            strict::collect_eagerly(heap, thread);
        }
        heap.count_taken(thread);
        loop {
            slice_if_due(heap, thread);
            match heap.large(bytes, scan, layout, collected) {
                Supply::Block(block) => {
                    thread.large.set(block);
                    frames::hand_over(thread, block.base.get());
                    return Some(block.base.get());
                }
                Supply::Collect => collected |= collect_in_need(heap, thread),
                Supply::Full => return None,
            }
        }
    });
    finish(object, bytes, collected)
}

/// Collects now; false if collection is held off or memory for the lists is out.
pub fn collect() -> bool {
    let Some(thread) = thread::attached() else { return false };
    let done = with_heap(thread, |heap| ensure_started(heap) && heap.held == 0 && collect_now(heap, thread));
    if done {
        finalize::run_after_collection();
    }
    done
}
