//! Ephemerons: a value that an object has as long as the object lives, and that does not keep the object alive.
//!
//! A table of one's own from objects to what is known of them would keep both for ever; one with weak keys keeps a key whose
//! value refers to it. An ephemeron's value is alive if something else refers to it, or if its key is alive; whether the key
//! is alive is decided without it (Hayes 1997).
//!
//! Finding out may take several rounds: a value that is kept may lead to further keys. Each round looks at the whole table, and marks at
//! least one object.
//!
//! A key is known by its address, and does not move; a value may, and is found where it is then.

use crate::frames::{hand_over_found, holding};
use crate::heap::{Address, Heap};
use crate::mark::Marker;
use crate::movement::Movement;
use crate::object::{Refused, look, look_with_room};
use crate::table::Table;

/// Keeps the values of keys that are marked.
pub(crate) fn follow(
    ephemerons: &mut Table<Address>,
    marker: &mut Marker<'_, impl Movement>,
    blocks: &[usize],
) {
    loop {
        let mut found = false;
        ephemerons.retain(|key, value| {
            if marker.is_marked(key) && !marker.is_marked(*value) {
                marker.value(value);
                found = true;
            }
            true
        });
        if !found {
            return;
        }
        marker.drain(blocks);
    }
}

/// Forgets the ephemerons of the dead; the values of others are found where they have moved to.
pub(crate) fn settle(ephemerons: &mut Table<Address>, marker: &Marker<'_, impl Movement>) {
    ephemerons.retain(|key, value| {
        if let Some(now) = marker.moved_to(*value) {
            *value = now;
        }
        marker.is_marked(key)
    });
}

/// Has `value` live as long as the object that starts at `key`, in place of the value it had; null takes that away.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
pub fn set_ephemeron(key: *mut u8, value: *mut u8) -> Result<(), Refused> {
    let (key, value) = (key.expose_provenance(), value.expose_provenance());
    let needs = |heap: &Heap| if value == 0 { 0 } else { heap.ephemerons.bytes_to_grow() };
    let work = |heap: &mut Heap| {
        heap.block_starting(key).ok_or(Refused::NoObject)?;
        if value == 0 {
            heap.ephemerons.remove(key);
            return Ok(());
        }
        heap.ephemerons.insert(key, value).map_err(|_| Refused::OutOfMemory)
    };
    holding(&[key, value], || look_with_room(needs, work))
}

/// The value that [`set_ephemeron`] gave the object that starts at `key`; null if none did.
pub fn ephemeron(key: *const u8) -> *mut u8 {
    let key = key.expose_provenance();
    let found = holding(&[key], || look(|heap| hand_over_found(heap.ephemerons.get(key)))).flatten();
    found.map_or(core::ptr::null_mut(), core::ptr::with_exposed_provenance_mut)
}
