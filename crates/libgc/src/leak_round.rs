//! Counts the leaks that one collection has found: the first are reported one by one, the rest as a number.

use crate::say;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Leaks reported one by one after each collection, as many as with libgc.
const REPORTED: usize = 40;
/// Leaks since the last [`end`], and the bytes of leaks that were only counted.
static FOUND: AtomicUsize = AtomicUsize::new(0);
static COUNTED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Counts a new leak; true if it is reported separately.
pub(crate) fn is_reported() -> bool {
    FOUND.fetch_add(1, Relaxed) < REPORTED
}

/// Adds the bytes of a leak that is only counted.
pub(crate) fn count(bytes: usize) {
    COUNTED_BYTES.fetch_add(bytes, Relaxed);
}

/// Reports how many leaks of a collection were only counted.
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
