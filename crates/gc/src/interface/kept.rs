//! Exported functions that allocate objects which stay until freed, make other objects stay, and free
//! objects.

use crate::config::Config;
use crate::death::explicit_free::{REMEMBERED_MAX, is_listed, put};
use crate::death::finalizers::Finalizer;
use crate::death::links;
use crate::heap::Heap;
use crate::instance::{Collector, INSTANCE};
use crate::mutator::access::{Refused, address, holding, look_at_all, with_collector};
use crate::mutator::collect::look_with_room;
use crate::mutator::{alloc, attach, sampling};
use crate::plan::sweep::free_large;
use crate::space::block::Scan;
use crate::space::size_class::{SMALL_MAX, class_of};
use crate::world::thread::current;
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

impl Collector {
    /// The slot of kept objects of `class`, made at its first use; `None` if objects move, or slots run out.
    fn kept_slot(&mut self, class: usize, atomic: bool) -> Option<u16> {
        let known = &INSTANCE.shared.kept_slots[usize::from(atomic)][class];
        if known.load(Ordering::Relaxed) == 0 {
            if !self.start(Config::DEFAULT) || self.heap.moves {
                return None;
            }
            let scan = if atomic { Scan::Nothing } else { Scan::Words };
            let slot = self.heap.new_slot(class, scan, core::ptr::null())?;
            self.heap.space.slots[usize::from(slot)].kept = true;
            self.heap.deaths.kept.any_blocks = true;
            known.store(slot, Ordering::Relaxed);
        }
        Some(known.load(Ordering::Relaxed))
    }
}

fn slot(class: usize, atomic: bool) -> Option<usize> {
    let slot = match INSTANCE.shared.kept_slots[usize::from(atomic)][class].load(Ordering::Relaxed) {
        0 => with_collector(attach::attached()?, |collector| collector.kept_slot(class, atomic))?,
        slot => slot,
    };
    Some(usize::from(slot))
}

/// An object that stays until it is freed: untyped, reading zero, or `atomic`, without pointers and with
/// undefined contents; null if there is no memory.
pub fn alloc_kept(bytes: usize, atomic: bool) -> *mut u8 {
    if bytes <= SMALL_MAX
        && let Some(slot) = slot(class_of(bytes), atomic)
    {
        return alloc::small(slot, bytes);
    }
    let new = if atomic { alloc::alloc_atomic(bytes) } else { alloc::alloc(bytes) };
    if new.is_null() || keep(new).is_ok() { new } else { null_mut() }
}

/// Keeps the object at `pointer` until it is freed.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
pub fn keep(pointer: *mut u8) -> Result<(), Refused> {
    let object = address(pointer);
    let work = |heap: &mut Heap| {
        let block = heap.block_starting(object).ok_or(Refused::NoObject)?;
        if block.is_kept() {
            return Ok(());
        }
        heap.deaths.kept.table.insert(object, 0).map_err(|_| Refused::OutOfMemory)
    };
    holding(&[object], || look_with_room(|heap| heap.deaths.kept.table.bytes_to_grow(), work))
}

/// Frees an object.
///
/// # Errors
/// [`Refused::NoObject`]; nothing has changed then.
///
/// # Safety
/// Nobody uses the object any more.
pub unsafe fn free(pointer: *mut u8) -> Result<(), Refused> {
    // SAFETY: the caller guarantees that the object is not used any more.
    unsafe { free_as(pointer, true) }
}

/// Frees an object. A small object's memory keeps its contents, and is not used again before the next
/// collection. A program may write a mark there when it frees the object, and finds that mark if it frees it
/// again.
///
/// # Errors
/// [`Refused::NoObject`]; nothing has changed then.
///
/// # Safety
/// As [`free`].
pub unsafe fn free_later(pointer: *mut u8) -> Result<(), Refused> {
    // SAFETY: the caller guarantees that the object is not used any more.
    unsafe { free_as(pointer, false) }
}

/// [`free`], or [`free_later`] unless `soon`.
///
/// # Safety
/// As [`free`].
unsafe fn free_as(pointer: *mut u8, soon: bool) -> Result<(), Refused> {
    let object = address(pointer);
    let work = |collector: &mut Collector| {
        let in_cycle = collector.plan.is_in_cycle();
        let heap = &mut collector.heap;
        let block = heap.block_starting(object).ok_or(Refused::NoObject)?;
        let small = (soon && !in_cycle && heap.reuses(block, object)).then(current).flatten();
        if small.is_some_and(|thread| is_listed(thread, block, object)) {
            return Err(Refused::NoObject);
        }
        heap.stats.freed_bytes += block.size.get() as u64;
        let is_sample = heap.deaths.samples.forget(object);
        heap.deaths.kept.forget(object);
        heap.deaths.ephemerons.remove(object);
        heap.deaths.disclaimers.forget(object);
        if heap.deaths.finalizers.remove(object).is_some_and(|Finalizer { due, .. }| due) {
            heap.deaths.due -= 1;
        }
        if let Some(thread) = small {
            heap.count_taken(thread);
            heap.sizing.used = heap.sizing.used.saturating_sub(block.size.get());
            put(thread, block, object);
        } else if block.slot.get() == 0 && !in_cycle && links::clear_to(&mut heap.deaths.links, object) {
            // Not while a trace in slices may be about to scan it.
            free_large(heap, block);
        } else if heap.deaths.freed.len() < REMEMBERED_MAX || block.is_kept() {
            // Without memory for the list it is garbage, too; or it stays, if it is kept.
            let _ = heap.deaths.freed.push(object);
        }
        Ok(is_sample)
    };
    let freed = holding(&[object], || look_at_all(work));
    if freed.unwrap_or(Err(Refused::NoObject))?
        && let Some(thread) = current()
    {
        sampling::tell_deaths(thread);
    }
    Ok(())
}
