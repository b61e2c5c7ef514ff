//! The slow paths of allocation, called by the inline functions of `vellum_gc.h`: next run of free objects,
//! next block, collection, large objects.

use crate::config::Config;
use crate::death::explicit_free;
use crate::instance::INSTANCE;
use crate::mutator::access::{holding, with_collector, with_heap};
use crate::mutator::collect::{self, collect_in_need, slice_if_due};
use crate::mutator::run::run_after_collection;
use crate::mutator::supply::Supply;
use crate::mutator::{attach, sampling};
use crate::observer::Observer;
use crate::process::hooks::full;
use crate::process::local;
use crate::space::block::{Block, Scan};
use crate::space::layout::Layout;
use crate::space::size_class::{
    ALIGN_MAX, ATOMIC_FIRST, BLOCK, CLASS_LAST, GRANULE, SMALL_MAX, TYPED_FIRST, WORD, bytes_of, class_of,
};
use crate::world::thread::Thread;
use core::ptr::null;
use vellum_pages::{BLOCK_MAX, PAGE, round_up};
use vellum_sys::Addr;

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

/// [`alloc_typed`] with the ordinary case inlined: `vel_gc_new` of the header.
#[inline]
pub fn alloc_typed_inline(layout: &'static Layout) -> *mut u8 {
    let run = local::run(layout.slot.get() as usize);
    let bytes = layout.bytes.get() as usize;
    // Read and written once and in order: a collection may stop the thread in between, and relies on it.
    // SAFETY: the thread's own run, or one that is empty and so is not written.
    unsafe {
        let object = run.next.as_ptr().read_volatile();
        if run.end.get().since(object) >= bytes {
            run.next.as_ptr().write_volatile(object + bytes);
            return object.ptr();
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
            // SAFETY: a new object of `bytes` bytes. Without pointers its memory was not cleared.
            unsafe { object.write_bytes(0, bytes) };
        }
        return object;
    }
    let class = class_of(bytes);
    let slot = match layout.array_slots[class].get() {
        0 => {
            let Some(thread) = attach::attached() else { return full(bytes) };
            let slot = with_heap(thread, |heap| heap.slot_of(layout, class));
            usize::from(slot)
        }
        slot => usize::from(slot),
    };
    if slot < TYPED_FIRST && layout.scan() == Scan::Procedure {
        // There are no more slots, and an untyped one would not call the callback: a large object has a type.
        return large(bytes, Scan::Procedure, layout);
    }
    small(slot, bytes)
}

/// An object aligned to `align`, a power of two up to [`ALIGN_MAX`]; null without memory or such a power.
pub fn alloc_aligned(bytes: usize, align: usize, atomic: bool) -> *mut u8 {
    if !align.is_power_of_two() || align > ALIGN_MAX {
        return core::ptr::null_mut();
    }
    let bytes = bytes.max(1);
    // Objects of a class lie at multiples of its size from a block's start, which is aligned to every
    // alignment served.
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

/// An object of `slot`.
pub(crate) fn small(slot: usize, bytes: usize) -> *mut u8 {
    let Some(thread) = attach::attached() else { return full(bytes) };
    thread.expect_not_collecting();
    thread.enter();
    let before = collections(thread);
    let observer = INSTANCE.shared.observer.if_on();
    if observer.is_some_and(|observer| observer.collects(thread, Some(slot))) {
        collect::collect_eagerly(&mut thread.lock(), thread);
    }
    let object = match take(thread, slot) {
        Some(object) => Some(object),
        None if let Some(object) = explicit_free::again(thread, slot) => {
            if let Some(observer) = observer {
                observer.reused(thread, slot);
            }
            Some(object)
        }
        None if refill(thread, slot, observer) => take(thread, slot),
        None => None,
    };
    let collected = collections(thread) != before;
    thread.hand_over(object.unwrap_or_default());
    let is_sample = observer.is_some() && thread.cursors[slot].sampled.take();
    thread.leave();
    if is_sample && let Some(object) = object {
        holding(&[object], || sampling::record(thread, object, bytes));
    }
    finish(object, bytes, collected)
}

/// The number of collections that this thread has made.
fn collections(thread: &Thread) -> u32 {
    thread.collections.get()
}

/// Ends an allocation: calls the hook if there is no memory, runs finalizers if it has collected.
#[inline]
fn finish(object: Option<Addr>, bytes: usize, collected: bool) -> *mut u8 {
    if collected {
        holding(&[object.unwrap_or_default()], run_after_collection);
    }
    match object {
        Some(object) => object.ptr(),
        None => full(bytes),
    }
}

/// The next object of the thread's run of `slot`. The size is the block's, as the slot's is behind the lock.
#[inline]
fn take(thread: &Thread, slot: usize) -> Option<Addr> {
    let (run, cursor) = (&thread.runs[slot], &thread.cursors[slot]);
    let object = run.next.get();
    if object == run.end.get() {
        return None;
    }
    run.next.set(object + cursor.block.get()?.size.get());
    Some(object)
}

/// Gets the thread a run of `slot`; false if there is no memory.
fn refill(thread: &'static Thread, slot: usize, observer: Option<&Observer>) -> bool {
    let cursor = &thread.cursors[slot];
    if let Some(block) = cursor.block.get()
        && next_run(thread, slot, block, observer)
    {
        return true;
    }
    cursor.block.set(None);
    let mut collected = false;
    loop {
        let Some(block) = next_block(thread, slot, &mut collected) else { return false };
        cursor.block.set(Some(block));
        cursor.index.set(0);
        // Without the lock: its release would wait until the cleared memory has left the store buffer.
        if next_run(thread, slot, block, observer) {
            return true;
        }
    }
}

/// A block with room for `slot`, after a collection if one is due; `None` if there is no memory.
fn next_block(thread: &'static Thread, slot: usize, collected: &mut bool) -> Option<&'static Block> {
    let mut collector = thread.lock();
    if !collector.start(Config::DEFAULT) {
        return None;
    }
    collector.heap.count_taken(thread);
    loop {
        slice_if_due(&mut collector, thread);
        match collector.supply(slot, *collected) {
            Supply::Block(block) => return Some(block),
            Supply::Collect => *collected |= collect_in_need(&mut collector, thread),
            Supply::Full => return None,
        }
    }
}

/// Makes the block's next free objects the thread's run, cleared if they must be; false if there are none.
#[inline]
fn next_run(thread: &Thread, slot: usize, block: &Block, observer: Option<&Observer>) -> bool {
    let (run, cursor) = (&thread.runs[slot], &thread.cursors[slot]);
    let size = block.size.get();
    let Some((from, mut to)) = block.take_run(cursor.index.get(), RUN_MAX) else { return false };
    if let Some(observer) = observer {
        let count = observer.objects(thread, slot, size, to - from);
        block.clear_allocated(from + count, to);
        to = from + count;
    }
    cursor.index.set(to);
    if INSTANCE.shared.is_white() {
        block.clear_marks(from, to);
    }
    let start = block.base.get() + from as usize * size;
    let bytes = (to - from) as usize * size;
    if !(ATOMIC_FIRST..TYPED_FIRST).contains(&slot) {
        // SAFETY: free objects of a block that only this thread allocates from, just taken as its run.
        unsafe { clear(start.ptr(), bytes) };
    }
    run.next.set(start);
    run.end.set(start + bytes);
    thread.uncounted.set(thread.uncounted.get() + bytes);
    true
}

/// Bytes of a run at most. The limit keeps a seldom used block untouched beyond its used part; and cleared
/// memory is still in the nearest cache at its use.
const RUN_MAX: usize = PAGE;

/// Clears `bytes` bytes from `start`, whole granules.
///
/// # Safety
/// The bytes are in use by the caller alone.
#[inline(always)]
unsafe fn clear(start: *mut u128, bytes: usize) {
    /// Holes up to this many bytes are cleared before a call would have begun to.
    const FEW: usize = 8 * GRANULE;
    if bytes > FEW {
        // SAFETY: the caller owns the `bytes` bytes from `start`.
        return unsafe { start.cast::<u8>().write_bytes(0, bytes) };
    }
    for granule in 0..bytes / GRANULE {
        // SAFETY: the caller owns these bytes. Volatile: else the compiler would make it the call it
        // replaces.
        unsafe { start.add(granule).write_volatile(0) };
    }
}

/// A large object.
fn large(bytes: usize, scan: Scan, layout: *const Layout) -> *mut u8 {
    if bytes > BLOCK_MAX {
        return full(bytes);
    }
    let Some(thread) = attach::attached() else { return full(bytes) };
    let mut collected = false;
    let observer = INSTANCE.shared.observer.if_on();
    let is_sample = observer.is_some_and(|observer| observer.is_due(round_up(bytes, PAGE)));
    let object = with_collector(thread, |collector| {
        if !collector.start(Config::DEFAULT) {
            return None;
        }
        if observer.is_some_and(|observer| observer.collects(thread, None)) {
            collect::collect_eagerly(collector, thread);
        }
        collector.heap.count_taken(thread);
        loop {
            slice_if_due(collector, thread);
            match collector.large(bytes, scan, layout, collected) {
                Supply::Block(block) => {
                    thread.large.set(Some(block));
                    thread.hand_over(block.base.get());
                    return Some(block.base.get());
                }
                Supply::Collect => collected |= collect_in_need(collector, thread),
                Supply::Full => return None,
            }
        }
    });
    if is_sample && let Some(object) = object {
        holding(&[object], || sampling::record(thread, object, bytes));
    }
    finish(object, bytes, collected)
}
