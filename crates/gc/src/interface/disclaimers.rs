//! The interface of disclaimers ([`disclaim`](crate::death::disclaim)): setting and answering them.

use crate::death::disclaim::DisclaimFn;
use crate::heap::Heap;
use crate::mutator::access::{Refused, address, holding, look};
use crate::mutator::collect::look_with_room;

/// Sets the disclaimer of the object at `pointer`, or with `None` takes it away: `function` is asked, with
/// `data`, whenever the object is found dead. If `follows`, objects that the object refers to do not count as
/// dead; else they are asked about, or finalized, together with it.
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

/// Whether the object that holds the byte at `pointer` was alive at the last collection, is newer, or is
/// wanted ([`want`]) since it was found dead.
pub fn is_marked(pointer: *const u8) -> bool {
    let at = address(pointer);
    let work = |heap: &mut Heap| {
        let (block, index) = heap.find(at)?;
        Some(heap.deaths.disclaimers.is_marked(block.address(index)))
    };
    holding(&[at], || look(work)).flatten().unwrap_or(false)
}

/// Records whether an object is wanted, for its disclaimer to see: it may have been found dead.
pub fn want(pointer: *const u8, wanted: bool) {
    let at = address(pointer);
    let work = |heap: &mut Heap| {
        let Some((block, index)) = heap.find(at) else { return };
        heap.deaths.disclaimers.want(block.address(index), wanted);
    };
    holding(&[at], || look(work));
}
