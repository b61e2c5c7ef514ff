//! What a program may ask and do about objects it has: where one starts, how large it is, resizing, keeping, finalizers, walking
//! over all.

use crate::alloc::{self, with_heap};
use crate::block::{Block, Index, Scan};
use crate::class::{ATOMIC_FIRST, WORD};
use crate::collect;
use crate::event;
use crate::finalize::{self, Finalizer, Function, Order};
use crate::frames::{self, holding};
use crate::freed;
use crate::heap::Heap;
use crate::kept::{alloc_kept, keep};
use crate::roots::{ImageFn, Range};
use crate::stats::Stats;
use crate::stop;
use crate::thread::{self, Thread};
use crate::tls;
use core::ptr::null_mut;
use vellum_pages::PAGE;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The address is not the start of an object.
    NoObject,
    /// There is no memory.
    OutOfMemory,
}

pub(crate) fn address(pointer: *const u8) -> usize {
    pointer.expose_provenance()
}

/// The object that holds the byte at `address`.
pub(crate) fn find(heap: &Heap, address: usize) -> Option<(&'static Block, Index)> {
    let block = heap.space.block_of(address)?;
    let index = block.index_at(address - block.base.get());
    (index.0 < block.count.get() && block.is_allocated(index)).then_some((block, index))
}

/// Runs `work` with the heap's lock; `None` if memory for the thread's record is out.
pub(crate) fn look<R>(work: impl FnOnce(&mut Heap) -> R) -> Option<R> {
    thread::attached().map(|thread| with_heap(thread, work))
}

/// The same when there is room below the maximum for the bytes that `needs` says, if need be after a collection.
pub(crate) fn look_with_room<R>(
    needs: impl Fn(&Heap) -> usize,
    work: impl FnOnce(&mut Heap) -> Result<R, Refused>,
) -> Result<R, Refused> {
    let thread = thread::attached().ok_or(Refused::OutOfMemory)?;
    let (result, collected) = with_heap(thread, |heap| {
        let bytes = needs(heap);
        if bytes == 0 || heap.may_take(bytes) {
            return (work(heap), false);
        }
        if heap.held != 0 {
            return (Err(Refused::OutOfMemory), false);
        }
        alloc::collect_now(heap, thread);
        let fits = heap.may_take(needs(heap));
        (if fits { work(heap) } else { Err(Refused::OutOfMemory) }, true)
    });
    if collected {
        finalize::run_after_collection();
    }
    result
}

/// The start of the object that holds the byte at `pointer`; null if there is none.
pub fn base(pointer: *const u8) -> *mut u8 {
    let at = address(pointer);
    let found = holding(&[at], || look(|heap| find(heap, at).map(|(block, index)| block.address(index))));
    found.flatten().map_or(null_mut(), core::ptr::with_exposed_provenance_mut)
}

/// Bytes of room in the object that starts at `pointer`; 0 if none does.
pub fn size(pointer: *const u8) -> usize {
    let at = address(pointer);
    holding(&[at], || look(|heap| heap.block_starting(at).map_or(0, |block| block.size.get()))).unwrap_or(0)
}

/// What is looked at in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Every word.
    Untyped,
    /// Nothing.
    Atomic,
    /// What a bitmap says.
    Typed,
    /// What a procedure names that is given this.
    Procedure(usize),
}

/// The sort of the object that starts at `pointer`, and whether it is kept until it is freed; `None` if none does.
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
        Some((sort, heap.kept.has(block, at)))
    };
    holding(&[at], || look(work)).flatten()
}

/// Changes an object's size, moving it if it must. Null: there is no memory or no such object; nothing has changed then.
///
/// # Safety
/// Nobody uses the old object any more if it has moved.
pub unsafe fn realloc(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        return alloc::alloc(bytes);
    }
    // SAFETY: by this function's condition.
    holding(&[address(pointer)], || unsafe { resize(pointer, bytes) })
}

/// [`realloc`] of an object that stays where it is meanwhile.
///
/// # Safety
/// As there.
unsafe fn resize(pointer: *mut u8, bytes: usize) -> *mut u8 {
    let found = look(|heap| {
        let block = heap.block_starting(address(pointer))?;
        let atomic = (ATOMIC_FIRST..crate::class::TYPED_FIRST).contains(&usize::from(block.slot.get()))
            || ((block.slot.get() == 0 || block.is_kept()) && block.scan.get() == Scan::Nothing);
        let is_kept = heap.kept.has(block, address(pointer));
        Some((block.size.get(), atomic, block.scan.get(), block.layout.get(), is_kept))
    });
    let Some((room, atomic, scan, layout, is_kept)) = found.flatten() else { return null_mut() };
    // It fits, and would not waste more than half.
    if bytes <= room && bytes > room / 2 {
        if !atomic {
            // Should it grow again, what is gained must read zero; and until then it keeps nothing.
            // SAFETY: the rest of an object that is the caller's.
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
            // SAFETY: nobody else knows it.
            let _ = unsafe { freed::free(new) };
            return null_mut();
        }
        // SAFETY: both objects have so many bytes, and they are not the same.
        unsafe {
            new.copy_from_nonoverlapping(pointer, room.min(bytes));
            // It was found a moment ago, and is the caller's alone.
            let _ = freed::free(pointer);
        }
        if let Some(thread) = tls::current() {
            frames::hand_over(thread, address(new));
        }
        new
    })
}

/// Sets, or with `None` takes away, the finalizer of the object at `pointer`. Returns the one it had, with its data: if that was due, it
/// will not run.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
///
/// # Safety
/// The function may be called with the object and `data` on any thread, at any time after the object has died.
pub unsafe fn set_finalizer(
    pointer: *mut u8,
    function: Option<Function>,
    data: *mut u8,
    order: impl Into<Order>,
) -> Result<Option<(Function, *mut u8)>, Refused> {
    let (object, data) = (address(pointer), address(data));
    let needs = |heap: &Heap| if function.is_some() { heap.finalizers.bytes_to_grow() } else { 0 };
    let work = |heap: &mut Heap| {
        heap.block_starting(object).ok_or(Refused::NoObject)?;
        let before = match function {
            Some(function) => {
                let finalizer = Finalizer { function, data, order: order.into(), due: false };
                let (before, keys) = (heap.finalizers.get(object), heap.finalizers.len());
                heap.finalizers.insert(object, finalizer).map_err(|_| Refused::OutOfMemory)?;
                heap.count_entries::<Finalizer>(keys, heap.finalizers.len());
                before
            }
            None => heap.finalizers.remove(object),
        };
        heap.due -= usize::from(before.is_some_and(|before| before.due));
        Ok(before)
    };
    let before = holding(&[object, data], || look_with_room(needs, work))?;
    Ok(before.map(|before| (before.function, core::ptr::with_exposed_provenance_mut(before.data))))
}

/// Has the words from `start` up to `end` looked through, as static data is.
///
/// # Errors
/// [`Refused::OutOfMemory`].
///
/// # Safety
/// The range may be read until it is removed.
pub unsafe fn add_roots(start: *const u8, end: *const u8) -> Result<(), Refused> {
    add(start, end, false)
}

/// Has the words from `start` up to `end` looked through as the pointers of typed objects are: what they lead to may move, and they are
/// changed then.
///
/// # Errors
/// [`Refused::OutOfMemory`].
///
/// # Safety
/// The range may be read and written until it is removed. Each of its words holds a pointer, or what is no address in the heap.
pub unsafe fn add_precise_roots(start: *const u8, end: *const u8) -> Result<(), Refused> {
    add(start, end, true)
}

fn add(start: *const u8, end: *const u8, precise: bool) -> Result<(), Refused> {
    let range = Range { start: address(start).next_multiple_of(8), end: address(end) };
    look_with_room(|_| PAGE, |heap| heap.roots.add(range, precise).map_err(|_| Refused::OutOfMemory))
}

/// Has the words from `start` up to `end` looked through as long as the calling thread lives: its thread-local data in a library that
/// was loaded late, or whatever else is its own.
///
/// # Errors
/// [`Refused::OutOfMemory`].
///
/// # Safety
/// The range may be read until it is removed or the thread ends.
pub unsafe fn add_thread_roots(start: *const u8, end: *const u8) -> Result<(), Refused> {
    let range = Range { start: address(start).next_multiple_of(8), end: address(end) };
    let key = thread::attached().ok_or(Refused::OutOfMemory)?.key();
    look_with_room(|_| PAGE, |heap| heap.roots.add_of_thread(range, key).map_err(|_| Refused::OutOfMemory))
}

/// Leaves whole words of static data from `start` up to `end` out: they are not looked through from the next collection on.
///
/// # Errors
/// [`Refused::OutOfMemory`].
///
/// # Safety
/// No word there is the only one that leads to an object, until [`include_roots`].
pub unsafe fn exclude_roots(start: *const u8, end: *const u8) -> Result<(), Refused> {
    let range = whole_words(start, end);
    look_with_room(|_| PAGE, |heap| heap.roots.exclude(range).map_err(|_| Refused::OutOfMemory))
}

/// Undoes every [`exclude_roots`] of ranges within this one; returns how many there were.
pub fn include_roots(start: *const u8, end: *const u8) -> usize {
    look(|heap| heap.roots.include(whole_words(start, end))).unwrap_or(0)
}

/// Sets what is asked which libraries' static data is looked through; returns what was.
pub fn on_image(hook: Option<ImageFn>) -> Option<ImageFn> {
    look(|heap| heap.roots.on_image(hook)).flatten()
}

fn whole_words(start: *const u8, end: *const u8) -> Range {
    Range { start: address(start).next_multiple_of(WORD), end: address(end) / WORD * WORD }
}

/// Undoes every [`add_roots`] and [`add_precise_roots`] of ranges within this one; returns how many there were.
pub fn remove_roots(start: *const u8, end: *const u8) -> usize {
    look(|heap| heap.roots.remove(Range { start: address(start), end: address(end) })).unwrap_or(0)
}

/// Holds collection off (`true`), or lets it on again; calls nest.
pub fn hold(off: bool) {
    let _ = look(|heap| heap.held = if off { heap.held + 1 } else { heap.held.saturating_sub(1) });
}

/// Sets the heap's limit in bytes; `usize::MAX` for none.
pub fn set_limit(bytes: usize) {
    let _ = look(|heap| {
        if alloc::ensure_started(heap) {
            heap.config.limit_bytes = bytes;
            heap.note_limits();
        }
    });
}

/// Has the heap not collect before it has `bytes` bytes, as if it had been made of that size; 0: when it is best.
pub fn set_least(bytes: usize) {
    let _ = look(|heap| {
        if alloc::ensure_started(heap) {
            heap.tell_least(bytes);
        }
    });
}

/// Sets the maximum of the heap with all that the collector keeps beside it, in bytes; `usize::MAX` for none.
pub fn set_max(bytes: usize) {
    let _ = look(|heap| {
        if alloc::ensure_started(heap) {
            heap.set_max(bytes);
        }
    });
}

/// The counters.
///
/// A procedure that the collector calls is told what they were at the last event.
pub fn stats() -> Stats {
    if tls::current().is_some_and(Thread::is_collecting) {
        return event::stats_at_last();
    }
    let stats = look(|heap| {
        if let Some(thread) = tls::current() {
            heap.count_taken(thread);
        }
        heap.stats_now()
    });
    stats.unwrap_or_default()
}

impl Heap {
    /// The counters, with what is counted elsewhere.
    pub(crate) fn stats_now(&self) -> Stats {
        Stats {
            heap_bytes: self.bytes as u64,
            metadata_bytes: self.metadata_bytes() as u64,
            copied_bytes: self.copies.bytes,
            ..self.stats
        }
    }
}

/// Calls `visit` with the address and size of every object that is alive or may be, with the world stopped. It calls nothing of the collector's.
pub fn walk(mut visit: impl FnMut(*mut u8, usize)) {
    let _ = look(|heap| {
        stop::world();
        let slots = heap.slots_in_use();
        let others = || thread::known().filter(|thread| !thread.is_current());
        // What threads have not used yet is no object, and if it is to be atomic, reads as what died there.
        thread::known().for_each(|thread| thread.count_runs(slots, false));
        collect::retire(heap);
        for &block in heap.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block: &Block = unsafe { &*(block as *const Block) };
            block.each(false, |index| {
                visit(core::ptr::with_exposed_provenance_mut(block.address(index)), block.size.get());
            });
        }
        others().for_each(|other| other.count_runs(slots, true));
        stop::go_on();
    });
}

/// Checks every invariant of the heap.
///
/// # Errors
/// Names the first that is broken.
pub fn validate() -> Result<(), &'static str> {
    look(|heap| {
        stop::world();
        let result = heap.validate();
        stop::go_on();
        result
    })
    .unwrap_or(Ok(()))
}
