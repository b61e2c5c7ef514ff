//! The interface of explicit frees ([`explicit_free`](crate::death::explicit_free)).

use crate::death::explicit_free::{REMEMBERED_MAX, is_listed, put};
use crate::death::finalizers::Finalizer;
use crate::death::links;
use crate::death::samples;
use crate::heap::Heap;
use crate::mutator::access::{Refused, address, holding, look};
use crate::mutator::tls;
use crate::plan::sweep::free_large;

/// Frees an object.
///
/// # Errors
/// [`Refused::NoObject`]; nothing has changed then.
///
/// # Safety
/// Nobody uses the object any more.
pub unsafe fn free(pointer: *mut u8) -> Result<(), Refused> {
    // SAFETY: by this function's condition.
    unsafe { free_as(pointer, true) }
}

/// The same; but a small object's memory is not used again before the next collection, and keeps its
/// contents. A program may write a mark there when it frees the object, and finds that mark if it frees it
/// again.
///
/// # Errors
/// [`Refused::NoObject`]; nothing has changed then.
///
/// # Safety
/// As [`free`].
pub unsafe fn free_later(pointer: *mut u8) -> Result<(), Refused> {
    // SAFETY: by this function's condition.
    unsafe { free_as(pointer, false) }
}

/// [`free`], or [`free_later`] unless `soon`.
///
/// # Safety
/// As [`free`].
unsafe fn free_as(pointer: *mut u8, soon: bool) -> Result<(), Refused> {
    let object = address(pointer);
    let work = |heap: &mut Heap| {
        let block = heap.block_starting(object).ok_or(Refused::NoObject)?;
        let small = (soon && heap.reuses(block, object)).then(tls::current).flatten();
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
        } else if block.slot.get() == 0
            && heap.incremental.cycle.is_none()
            && links::clear_to(&mut heap.deaths.links, object)
        {
            // Not while a trace in slices may be about to scan it.
            free_large(heap, block);
        } else if heap.deaths.freed.len() < REMEMBERED_MAX || block.is_kept() {
            // Without memory for the list it is garbage, too; or it stays, if it is kept.
            let _ = heap.deaths.freed.push(object);
        }
        Ok(is_sample)
    };
    let freed = holding(&[object], || look(work));
    if freed.unwrap_or(Err(Refused::NoObject))?
        && let Some(thread) = tls::current()
    {
        samples::tell_deaths(thread);
    }
    Ok(())
}
