//! Exported functions that set, read and remove finalizers, links, ephemerons and disclaimers (see `death`).

use crate::death::disclaim::DisclaimFn;
use crate::death::finalizers::{Finalizer, Function, Order};
use crate::death::links::Link;
use crate::heap::Heap;
use crate::mutator::access::{Refused, address, holding, look};
use crate::mutator::collect::look_with_room;
use crate::world::thread::hand_over_found;
use vellum_sys::Addr;

/// Sets, or with `None` takes away, the finalizer of the object at `pointer`. Returns the previous one with
/// its data; if that was due, it will not run.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
///
/// # Safety
/// The function may be called with the object and `data` on any thread, at any time after the object has
/// died.
pub unsafe fn set_finalizer(
    pointer: *mut u8,
    function: Option<Function>,
    data: *mut u8,
    order: impl Into<Order>,
) -> Result<Option<(Function, *mut u8)>, Refused> {
    let (object, data) = (address(pointer), address(data));
    let needs = |heap: &Heap| if function.is_some() { heap.deaths.finalizers.bytes_to_grow() } else { 0 };
    let work = |heap: &mut Heap| {
        heap.block_starting(object).ok_or(Refused::NoObject)?;
        let before = match function {
            Some(function) => {
                let finalizer = Finalizer { function, data, order: order.into(), due: false };
                let (before, keys) = (heap.deaths.finalizers.get(object), heap.deaths.finalizers.len());
                heap.deaths.finalizers.insert(object, finalizer).map_err(|_| Refused::OutOfMemory)?;
                heap.count_entries::<Finalizer>(keys, heap.deaths.finalizers.len());
                before
            }
            None => heap.deaths.finalizers.remove(object),
        };
        heap.deaths.due -= usize::from(before.is_some_and(|before| before.due));
        Ok(before)
    };
    let before = holding(&[object, data], || look_with_room(needs, work))?;
    Ok(before.map(|before| (before.function, before.data.ptr())))
}

/// Makes the pointer at `link` null when the object that holds the byte at `pointer` dies; this replaces an
/// earlier registration of that link.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
///
/// # Safety
/// The link may be read and written until the object dies or the link is undone.
pub unsafe fn link(link: *mut *mut u8, pointer: *const u8, late: bool) -> Result<(), Refused> {
    let (link, inside) = (address(link.cast()), address(pointer));
    let work = |heap: &mut Heap| {
        let (block, index) = heap.find(inside).ok_or(Refused::NoObject)?;
        let object = block.address(index);
        let keys = heap.deaths.links.len();
        heap.deaths.links.insert(link, Link { object, late }).map_err(|_| Refused::OutOfMemory)?;
        heap.count_entries::<Link>(keys, heap.deaths.links.len());
        Ok(())
    };
    holding(&[link, inside], || look_with_room(|heap| heap.deaths.links.bytes_to_grow(), work))
}

/// Undoes [`link`](fn@link). Returns the link's object; null if there was no such link, or it is cleared.
pub fn unlink(link: *mut *mut u8) -> *mut u8 {
    let link = address(link.cast());
    let work = |heap: &mut Heap| hand_over_found(heap.deaths.links.remove(link).map(|link| link.object));
    let object = holding(&[link], || look(work)).flatten();
    object.map_or(core::ptr::null_mut(), Addr::ptr)
}

/// Moves the registration of the link at `from` to `to`; the caller copies the pointer itself. False, and
/// nothing has changed, if `from` is no link.
///
/// # Errors
/// [`Refused::OutOfMemory`]; nothing has changed then.
///
/// # Safety
/// `to` meets the conditions of [`link`](fn@link).
pub unsafe fn move_link(from: *mut *mut u8, to: *mut *mut u8) -> Result<bool, Refused> {
    let (from, to) = (address(from.cast()), address(to.cast()));
    let work = |heap: &mut Heap| {
        let Some(this) = heap.deaths.links.get(from) else { return Ok(false) };
        heap.deaths.links.insert(to, this).map_err(|_| Refused::OutOfMemory)?;
        if from != to {
            heap.deaths.links.remove(from);
        }
        Ok(true)
    };
    holding(&[from, to], || look_with_room(|heap| heap.deaths.links.bytes_to_grow(), work))
}

/// Makes `value` live as long as the object that starts at `key`, in place of an earlier one. Null: no value.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
pub fn set_ephemeron(key: *mut u8, value: *mut u8) -> Result<(), Refused> {
    let (key, value) = (address(key), address(value));
    let needs = |heap: &Heap| if value.is_null() { 0 } else { heap.deaths.ephemerons.bytes_to_grow() };
    let work = |heap: &mut Heap| {
        heap.block_starting(key).ok_or(Refused::NoObject)?;
        if value.is_null() {
            heap.deaths.ephemerons.remove(key);
            return Ok(());
        }
        heap.deaths.ephemerons.insert(key, value).map_err(|_| Refused::OutOfMemory)
    };
    holding(&[key, value], || look_with_room(needs, work))
}

/// The value that [`set_ephemeron`] gave the object that starts at `key`; null if none did.
pub fn ephemeron(key: *const u8) -> *mut u8 {
    let key = address(key);
    let found = holding(&[key], || look(|heap| hand_over_found(heap.deaths.ephemerons.get(key)))).flatten();
    found.map_or(core::ptr::null_mut(), Addr::ptr)
}

/// Sets the disclaimer of the object at `pointer`, or with `None` takes it away: the collector calls
/// `function` with `data` whenever the object is found dead. If `follows`, objects that the object refers to
/// do not count as dead; else their disclaimers or finalizers are called in the same round.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
///
/// # Safety
/// The function may be called with the object and `data` on any thread, at any time after the object has
/// died.
pub unsafe fn set_disclaimer(
    pointer: *mut u8,
    function: Option<DisclaimFn>,
    data: *mut u8,
    follows: bool,
) -> Result<(), Refused> {
    let (object, data) = (address(pointer), address(data));
    let work = |heap: &mut Heap| {
        heap.block_starting(object).ok_or(Refused::NoObject)?;
        heap.deaths.disclaimers.set(object, function, data, follows).map_err(|_| Refused::OutOfMemory)
    };
    holding(&[object, data], || look_with_room(|heap| heap.deaths.disclaimers.bytes_to_grow(), work))
}

/// Returns whether the object that holds the byte at `pointer` was alive at the last collection, is newer, or
/// was revived by [`want`] since.
pub fn is_marked(pointer: *const u8) -> bool {
    let at = address(pointer);
    let work = |heap: &mut Heap| {
        let (block, index) = heap.find(at)?;
        Some(heap.deaths.disclaimers.is_marked(block.address(index)))
    };
    holding(&[at], || look(work)).flatten().unwrap_or(false)
}

/// Sets whether a disclaimer is to keep its object, which may have been found dead.
pub fn want(pointer: *const u8, wanted: bool) {
    let at = address(pointer);
    let work = |heap: &mut Heap| {
        let Some((block, index)) = heap.find(at) else { return };
        heap.deaths.disclaimers.want(block.address(index), wanted);
    };
    holding(&[at], || look(work));
}
