//! Ephemerons: pairs of two objects, a key and a value. The key keeps the value alive, but the value does not
//! keep the key alive.
//!
//! An ordinary table from objects to values would keep both for ever. A table with weak keys would keep a key
//! for ever if the value refers to the key. An ephemeron's value is alive if something else refers to it, or
//! if its key is alive. The value does not keep its key alive (Hayes 1997).
//!
//! Tracing may take several rounds: a value that is kept may lead to further keys. Each round reads the
//! whole table. A round that marks no object is the last.
//!
//! A key does not move, because the table has its address. A value may move; the table gets its new
//! address.

use crate::death::table::Table;
use crate::space::block::Block;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use vellum_sys::Addr;

/// Marks the values of marked keys.
pub(crate) fn follow(
    ephemerons: &mut Table<Addr>,
    marker: &mut Marker<'_, impl Movement>,
    blocks: &[&'static Block],
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

/// Drops the ephemerons of dead keys; the addresses of other values that have moved are changed.
pub(crate) fn settle(ephemerons: &mut Table<Addr>, marker: &Marker<'_, impl Movement>) {
    ephemerons.retain(|key, value| {
        if let Some(now) = marker.moved_to(*value) {
            *value = now;
        }
        marker.is_marked(key)
    });
}
