//! Measures processor time spent on rare work: growing tables, look-ups, stack walks, queries to the command.
//!
//! Such work takes long, so it is measured each time, by the thread's processor clock.

use crate::process;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_sys::clock;

/// Nanoseconds spent before the ledger was mapped.
static EARLY: AtomicU64 = AtomicU64::new(0);

/// Runs `what`, and adds its processor time to the cost of recording in the ledger. Must not be nested, as
/// that would count the time twice.
pub(crate) fn spending<T>(what: impl FnOnce() -> T) -> T {
    let began = clock::thread_cpu_ns();
    let result = what();
    let took = clock::thread_cpu_ns().saturating_sub(began);
    let spent = process::ledger().map_or(&EARLY, |ledger| &ledger.head().spent);
    spent.fetch_add(took, Relaxed);
    result
}

/// Takes the time spent before the ledger was mapped.
pub(crate) fn early() -> u64 {
    EARLY.swap(0, Relaxed)
}
