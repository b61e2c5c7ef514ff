//! Ephemerons: a value that an object has as long as the object lives, and that does not keep the object alive.
//!
//! A table of one's own from objects to what is known of them would keep both for ever; one with weak keys keeps a key whose
//! value refers to it. An ephemeron's value is alive if something else refers to it, or if its key is alive; whether the key
//! is alive is decided without it (Hayes 1997).
//!
//! Finding out may take several rounds: a value that is kept may lead to further keys. Each round looks at the whole table, and marks at
//! least one object.

use crate::alloc::with_heap;
use crate::heap::{Address, Heap};
use crate::mark::Marker;
use crate::movement::Movement;
use crate::object::Refused;
use crate::table::Table;
use crate::thread;

/// Keeps the values of keys that are marked.
pub(crate) fn follow(ephemerons: &Table<Address>, marker: &mut Marker<'_, impl Movement>, blocks: &[usize]) {
    loop {
        let mut found = false;
        ephemerons.each(|key, &value| {
            if marker.is_marked(key) && !marker.is_marked(value) {
                marker.root(value);
                found = true;
            }
        });
        if !found {
            return;
        }
        marker.drain(blocks);
    }
}

/// Forgets the ephemerons of the dead.
pub(crate) fn forget(ephemerons: &mut Table<Address>, marker: &Marker<'_, impl Movement>) {
    ephemerons.retain(|key, _| marker.is_marked(key));
}

fn look<R>(work: impl FnOnce(&mut Heap) -> R) -> Option<R> {
    thread::attached().map(|thread| with_heap(thread, work))
}

/// Has `value` live as long as the object that starts at `key`, in place of the value it had; null takes that away.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
pub fn set_ephemeron(key: *mut u8, value: *mut u8) -> Result<(), Refused> {
    let (key, value) = (key.expose_provenance(), value.expose_provenance());
    let set = look(|heap| {
        heap.block_starting(key).ok_or(Refused::NoObject)?;
        if value == 0 {
            heap.ephemerons.remove(key);
            return Ok(());
        }
        heap.ephemerons.insert(key, value).map_err(|_| Refused::OutOfMemory)
    });
    set.unwrap_or(Err(Refused::OutOfMemory))
}

/// The value that [`set_ephemeron`] gave the object that starts at `key`; null if none did.
pub fn ephemeron(key: *const u8) -> *mut u8 {
    let found = look(|heap| heap.ephemerons.get(key.expose_provenance())).flatten();
    found.map_or(core::ptr::null_mut(), core::ptr::with_exposed_provenance_mut)
}
