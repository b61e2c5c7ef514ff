//! The interface of links ([`links`](crate::death::links)): making and undoing them.

use crate::death::links::Link;
use crate::heap::Heap;
use crate::mutator::access::{Refused, address, holding, look};
use crate::mutator::collect::look_with_room;
use crate::trace::frames::hand_over_found;

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
    object.map_or(core::ptr::null_mut(), core::ptr::with_exposed_provenance_mut)
}

/// Moves the registration of the link at `from` to `to`; the caller copies the pointer itself. False, and
/// nothing has changed, if `from` is no link.
///
/// # Errors
/// [`Refused::OutOfMemory`]; nothing has changed then.
///
/// # Safety
/// As for [`link`](fn@link), of `to`.
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
