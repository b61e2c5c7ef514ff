//! The changes to a record after an operation: its count, bytes and times.

use core::sync::atomic::Ordering::Relaxed;
use vellum_wire::cost::{Due, Record};

/// Returns whether the operation with number `count` must be timed.
#[inline(always)]
pub(crate) fn is_due(record: &Record, count: u64) -> bool {
    count >= Due(record.due.load(Relaxed)).at()
}

/// Counts an operation of `bytes` bytes.
#[inline(always)]
pub(crate) fn count(record: &Record, bytes: u64) {
    record.count.store(record.count.load(Relaxed) + 1, Relaxed);
    if bytes != 0 {
        record.bytes.store(record.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
    }
}

/// Makes the first operation of a fresh record due.
pub(crate) fn prepare(record: &Record) {
    record.due.store(Due::new(1, 0).0, Relaxed);
}
