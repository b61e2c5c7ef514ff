//! Whether the heap has started, and the settings made before. Any module may use this one; it uses none.

use core::sync::atomic::{
    AtomicI32, AtomicU8, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const NOT_YET: u8 = 0;
const STARTING: u8 = 1;
const STARTED: u8 = 2;
/// It has, and objects are looked after as they are made (`leaks`, `checked`).
const WATCHED: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(NOT_YET);

/// The heap's limit that was asked for before its start, in bytes; 0: none.
pub(crate) static MAX_HEAP: AtomicUsize = AtomicUsize::new(0);
/// Threads that mark; 0: the collector chooses.
pub(crate) static MARKERS: AtomicU32 = AtomicU32::new(0);
/// Not 0: collections are made in slices.
pub(crate) static INCREMENTAL: AtomicI32 = AtomicI32::new(0);

pub(crate) fn has_begun() -> bool {
    STATE.load(Relaxed) != NOT_YET
}

/// Begins the start; false if another call has.
pub(crate) fn begin() -> bool {
    STATE.compare_exchange(NOT_YET, STARTING, AcqRel, Relaxed).is_ok()
}

/// The start is over.
pub(crate) fn started() {
    STATE.store(STARTED, Release);
}

pub(crate) fn is_started() -> bool {
    STATE.load(Acquire) >= STARTED
}

/// Whether the heap has started and nothing is to be done for objects but to make them.
#[inline(always)]
pub(crate) fn is_plain() -> bool {
    STATE.load(Acquire) == STARTED
}

/// Has objects looked after as they are made. The heap has started.
pub(crate) fn watch_objects() {
    let _ = STATE.compare_exchange(STARTED, WATCHED, AcqRel, Relaxed);
}
