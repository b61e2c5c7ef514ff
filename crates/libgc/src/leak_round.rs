//! Counts the leaks that one collection has found: the first are reported one by one, the rest as a sum.

use crate::say;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Leaks that are reported one by one after each collection, as many as with libgc.
const REPORTED: usize = 40;
/// Leaks since the last [`end`], and the bytes of those that were only counted.
static FOUND: AtomicUsize = AtomicUsize::new(0);
static COUNTED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Another leak was found: whether it is reported by itself.
pub(crate) fn is_reported() -> bool {
    FOUND.fetch_add(1, Relaxed) < REPORTED
}

/// Counts a leak of `bytes` bytes that is not.
pub(crate) fn count(bytes: usize) {
    COUNTED_BYTES.fetch_add(bytes, Relaxed);
}

/// A collection has reported its leaks: says how many were only counted.
pub(crate) fn end() {
    let (found, bytes) = (FOUND.swap(0, Relaxed), COUNTED_BYTES.swap(0, Relaxed));
    if found > REPORTED {
        let (mut number, mut size) = ([0; 20], [0; 20]);
        say::line(&[
            b"libgc (Vellum): leaked: ",
            say::decimal((found - REPORTED) as u64, &mut number),
            b" more objects, ",
            say::decimal(bytes as u64, &mut size),
            b" bytes",
        ]);
    }
}
