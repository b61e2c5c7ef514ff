//! The words of a record that say when an operation is timed next.
//!
//! `due` is the count at which that is. `timed` has two halves: how many were timed, and how far `due` is
//! from the last one.

use core::sync::atomic::Ordering::Relaxed;
use vellum_wire::cost::Record;

/// Whether the operation just counted is to be timed.
#[inline(always)]
pub(crate) fn is_due(record: &Record) -> bool {
    record.count.load(Relaxed) >= record.due.load(Relaxed)
}

/// Makes the first operation of a fresh record due.
pub(crate) fn prepare(record: &Record) {
    record.timed.store(joined(0, 1), Relaxed);
    record.due.store(1, Relaxed);
}

pub(crate) fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

pub(crate) fn joined(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
