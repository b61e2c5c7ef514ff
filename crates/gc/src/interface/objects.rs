//! Exported functions on single objects (start, size, kind, resizing), and the walk over all objects.

use crate::heap::Heap;
use crate::heap::statistics::Stats;
use crate::instance::{INSTANCE, world};
use crate::interface::kept::{alloc_kept, free, keep};
use crate::mutator::access::{address, holding, look, look_at_all};
use crate::mutator::alloc;
use crate::plan::collection;
use crate::space::block::Scan;
use crate::space::size_class::{ATOMIC_FIRST, WORD};
use crate::world::thread::{Thread, current};
use core::ptr::null_mut;
use vellum_sys::Addr;

/// The start of the object that holds the byte at `pointer`, or null.
pub fn base(pointer: *const u8) -> *mut u8 {
    let at = address(pointer);
    let found = holding(&[at], || look(|heap| heap.find(at).map(|(block, index)| block.address(index))));
    found.flatten().map_or(null_mut(), Addr::ptr)
}

/// Bytes of room in the object that starts at `pointer`; 0 if there is no such object.
pub fn size(pointer: *const u8) -> usize {
    let at = address(pointer);
    holding(&[at], || look(|heap| heap.block_starting(at).map_or(0, |block| block.size.get()))).unwrap_or(0)
}

/// Which words of an object are scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Every word.
    Untyped,
    /// Nothing.
    Atomic,
    /// The words that a bitmap names.
    Typed,
    /// The words that a callback names, which gets this argument.
    Procedure(usize),
}

/// The sort of the object that starts at `pointer`, and whether it is kept until it is freed; `None` if there
/// is no such object.
pub fn sort(pointer: *const u8) -> Option<(Sort, bool)> {
    let at = address(pointer);
    let work = |heap: &mut Heap| {
        let block = heap.block_starting(at)?;
        // SAFETY: a block's layout is null or lives for ever.
        let layout = unsafe { block.layout.get().as_ref() };
        let sort = match (block.scan.get(), layout) {
            (Scan::Words, _) => Sort::Untyped,
            (Scan::Procedure, Some(layout)) => {
                Sort::Procedure(layout.procedure.get().map_or(0, |(_, data)| data))
            }
            (_, Some(_)) => Sort::Typed,
            (_, None) => Sort::Atomic,
        };
        Some((sort, heap.deaths.kept.has(block, at)))
    };
    holding(&[at], || look(work)).flatten()
}

/// Changes an object's size; the object may move. Null, with nothing changed, without memory or such an
/// object.
///
/// # Safety
/// The old object is not used again if the object has moved.
pub unsafe fn realloc(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        return alloc::alloc(bytes);
    }
    // SAFETY: the caller gives up the old object if it moves; `holding` keeps it in place until then.
    holding(&[address(pointer)], || unsafe { resize(pointer, bytes) })
}

/// [`realloc`] of a pinned object.
///
/// # Safety
/// As there.
unsafe fn resize(pointer: *mut u8, bytes: usize) -> *mut u8 {
    let found = look(|heap| {
        let block = heap.block_starting(address(pointer))?;
        let atomic = (ATOMIC_FIRST..crate::space::size_class::TYPED_FIRST)
            .contains(&usize::from(block.slot.get()))
            || ((block.slot.get() == 0 || block.is_kept()) && block.scan.get() == Scan::Nothing);
        let is_kept = heap.deaths.kept.has(block, address(pointer));
        Some((block.size.get(), atomic, block.scan.get(), block.layout.get(), is_kept))
    });
    let Some((room, atomic, scan, layout, is_kept)) = found.flatten() else { return null_mut() };
    // It fits, and would not waste more than half.
    if bytes <= room && bytes > room / 2 {
        if !atomic {
            // The rest must read zero if it grows again; and until then it keeps nothing alive.
            // SAFETY: the rest of an object that is the caller's, within its size of `room` bytes.
            unsafe { pointer.add(bytes).write_bytes(0, room - bytes) };
        }
        return pointer;
    }
    // SAFETY: a block's layout is null or lives for ever.
    let layout = unsafe { layout.as_ref() };
    let new = match layout {
        None if is_kept => alloc_kept(bytes, atomic),
        Some(layout) if matches!(scan, Scan::Layout | Scan::Procedure) || !atomic => {
            alloc::alloc_array(layout, bytes.div_ceil(layout.words.get() as usize * WORD))
        }
        _ if atomic => alloc::alloc_atomic(bytes),
        _ => alloc::alloc(bytes),
    };
    if new.is_null() {
        return new;
    }
    holding(&[address(new)], || {
        if is_kept && keep(new).is_err() {
            // SAFETY: the object is new: nobody else knows it.
            let _ = unsafe { free(new) };
            return null_mut();
        }
        // SAFETY: both objects have at least as many bytes as are copied, and they are not the same.
        unsafe {
            new.copy_from_nonoverlapping(pointer, room.min(bytes));
            // It was found a moment ago, and is the caller's alone.
            let _ = free(pointer);
        }
        if let Some(thread) = current() {
            thread.hand_over(address(new));
        }
        new
    })
}

/// The counters.
///
/// A callback that the collector runs gets them as they were at the last event.
pub fn stats() -> Stats {
    if current().is_some_and(Thread::is_collecting) {
        return INSTANCE.shared.seen.stats();
    }
    let stats = look(|heap| {
        if let Some(thread) = current() {
            heap.count_taken(thread);
        }
        heap.stats_now()
    });
    stats.unwrap_or_default()
}

/// Calls `visit` with the address and size of every object that is alive or may be, with the world stopped.
/// `visit` must not call the collector.
pub fn walk(mut visit: impl FnMut(*mut u8, usize)) {
    let _ = look(|heap| {
        world().stop();
        let slots = heap.slots_in_use();
        let others = || world().known().filter(|thread| !thread.is_current());
        // Unused objects of runs are no objects; an atomic one would read as the dead one before it.
        world().known().for_each(|thread| thread.count_runs(slots, false));
        collection::retire(heap);
        for &block in heap.space.blocks.iter() {
            block.each(false, |index| {
                visit(block.address(index).ptr(), block.size.get());
            });
        }
        others().for_each(|other| other.count_runs(slots, true));
        world().go_on();
    });
}

/// Checks every invariant of the heap.
///
/// # Errors
/// Names the first that is broken.
pub fn validate() -> Result<(), &'static str> {
    look_at_all(|collector| {
        world().stop();
        let result = collector.plan.validate(&collector.heap);
        world().go_on();
        result
    })
    .unwrap_or(Ok(()))
}
