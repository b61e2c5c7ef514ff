//! The settings that a program may change while the heap is in use.

use crate::mutator::access::look;
use crate::mutator::collect::ensure_started;
use crate::plan;
use crate::plan::mark_sweep::incremental;
use vellum_sys::caps::{self, Caps};

/// Tracks no writes from now on, which takes system calls that few programs allow themselves: for a process
/// that is about to set a filter. Collections are whole ones, made at one go.
pub fn forgo_tracking() {
    if !incremental::is_white() {
        return caps::drop(Caps::TRACK | Caps::PROTECT);
    }
    let _ = look(|heap| {
        caps::drop(Caps::TRACK | Caps::PROTECT);
        heap.drop_cycle();
        heap.end_account();
    });
}

/// Disables collection (`true`), or enables it again; calls nest.
pub fn hold(off: bool) {
    let _ = look(|heap| heap.held = if off { heap.held + 1 } else { heap.held.saturating_sub(1) });
}

/// Sets the heap's limit in bytes; `usize::MAX` for none.
pub fn set_limit(bytes: usize) {
    let _ = look(|heap| {
        if ensure_started(heap) {
            heap.config.limit_bytes = bytes;
            heap.note_limits();
        }
    });
}

/// Sets the size in bytes below which the heap does not collect, as if it had been made of that size; 0: it
/// collects when that is best.
pub fn set_least(bytes: usize) {
    let _ = look(|heap| {
        if ensure_started(heap) {
            heap.config.least_bytes = bytes;
            plan::of(heap).least_changed(heap);
        }
    });
}

/// Sets the maximum of the heap with everything that the collector keeps beside it, in bytes; `usize::MAX`
/// for none.
pub fn set_max(bytes: usize) {
    let _ = look(|heap| {
        if ensure_started(heap) {
            heap.set_max(bytes);
        }
    });
}
