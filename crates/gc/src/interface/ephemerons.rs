//! The interface of ephemerons ([`ephemerons`](crate::death::ephemerons)): making and reading them.

use crate::heap::Heap;
use crate::mutator::access::{Refused, holding, look};
use crate::mutator::collect::look_with_room;
use crate::trace::frames::hand_over_found;

/// Makes `value` live as long as the object that starts at `key`, in place of an earlier value; null takes
/// the value away.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
pub fn set_ephemeron(key: *mut u8, value: *mut u8) -> Result<(), Refused> {
    let (key, value) = (key.expose_provenance(), value.expose_provenance());
    let needs = |heap: &Heap| if value == 0 { 0 } else { heap.deaths.ephemerons.bytes_to_grow() };
    let work = |heap: &mut Heap| {
        heap.block_starting(key).ok_or(Refused::NoObject)?;
        if value == 0 {
            heap.deaths.ephemerons.remove(key);
            return Ok(());
        }
        heap.deaths.ephemerons.insert(key, value).map_err(|_| Refused::OutOfMemory)
    };
    holding(&[key, value], || look_with_room(needs, work))
}

/// The value that [`set_ephemeron`] gave the object that starts at `key`; null if none did.
pub fn ephemeron(key: *const u8) -> *mut u8 {
    let key = key.expose_provenance();
    let found = holding(&[key], || look(|heap| hand_over_found(heap.deaths.ephemerons.get(key)))).flatten();
    found.map_or(core::ptr::null_mut(), core::ptr::with_exposed_provenance_mut)
}
