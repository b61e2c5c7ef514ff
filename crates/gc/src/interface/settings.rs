//! Exported functions that change settings while the heap is in use.

use crate::config::Config;
use crate::instance::{Collector, INSTANCE};
use crate::mutator::access::{look, look_at_all};
use vellum_sys::caps::{self, Caps};

/// Tracks no writes from now on, which takes system calls that few programs allow themselves: for a process
/// that is about to set a filter. Collections are whole ones, made at one go.
pub fn forgo_tracking() {
    if !INSTANCE.shared.is_white() {
        return caps::drop(Caps::TRACK | Caps::PROTECT);
    }
    let _ = look_at_all(|Collector { heap, plan }| {
        caps::drop(Caps::TRACK | Caps::PROTECT);
        plan.drop_cycle(heap);
        plan.end_account(heap);
    });
}

/// Disables collection (`true`), or enables it again; calls nest.
pub fn hold(off: bool) {
    let _ = look(|heap| heap.held = if off { heap.held + 1 } else { heap.held.saturating_sub(1) });
}

/// Sets the heap's limit in bytes; `usize::MAX` for none.
pub fn set_limit(bytes: usize) {
    let _ = look_at_all(|collector| {
        if collector.start(Config::DEFAULT) {
            collector.heap.config.limit_bytes = bytes;
            collector.heap.note_limits();
        }
    });
}

/// Sets the size in bytes below which the heap does not collect; 0: collections follow from the live bytes.
pub fn set_least(bytes: usize) {
    let _ = look_at_all(|collector| {
        if collector.start(Config::DEFAULT) {
            collector.heap.config.least_bytes = bytes;
            collector.plan.least_changed(&mut collector.heap);
        }
    });
}

/// Sets the maximum of the heap with the collector's other memory, in bytes; `usize::MAX` for none.
pub fn set_max(bytes: usize) {
    let _ = look_at_all(|collector| {
        if collector.start(Config::DEFAULT) {
            // The entries on the mark stack may be more than its new room.
            collector.plan.drop_cycle(&mut collector.heap);
            collector.heap.set_max(bytes);
        }
    });
}
