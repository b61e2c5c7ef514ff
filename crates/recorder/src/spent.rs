//! Processor time spent on rare work: growing tables, look-ups, walking stacks, queries to the command.
//!
//! This work is rare and long, so it is measured each time, by the thread's processor clock.

use crate::process;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_sys::clock;

/// Nanoseconds spent before there was a ledger to note them in.
static EARLY: AtomicU64 = AtomicU64::new(0);

/// `what`, whose processor time the ledger adds to what recording cost. Not to be nested: it would count
/// twice.
pub(crate) fn spending<T>(what: impl FnOnce() -> T) -> T {
    let began = clock::thread_cpu_ns();
    let result = what();
    let took = clock::thread_cpu_ns().saturating_sub(began);
    let spent = process::ledger().map_or(&EARLY, |ledger| &ledger.head().spent);
    spent.fetch_add(took, Relaxed);
    result
}

/// The time spent before the ledger was mapped, once.
pub(crate) fn early() -> u64 {
    EARLY.swap(0, Relaxed)
}
