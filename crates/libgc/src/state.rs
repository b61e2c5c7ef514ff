//! Whether the heap has started, and settings made before that. This module uses no other; any may use it.

use core::sync::atomic::{
    AtomicI32, AtomicU8, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const NOT_YET: u8 = 0;
const STARTING: u8 = 1;
const STARTED: u8 = 2;
/// The heap has started, and new objects are watched (`leaks`, `checked`).
const WATCHED: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(NOT_YET);

/// The heap limit requested before the start, in bytes; 0 for none.
pub(crate) static MAX_HEAP: AtomicUsize = AtomicUsize::new(0);
/// The number of marking threads; 0 lets the collector choose.
pub(crate) static MARKERS: AtomicU32 = AtomicU32::new(0);
/// True (not 0) if collections are incremental.
pub(crate) static INCREMENTAL: AtomicI32 = AtomicI32::new(0);

pub(crate) fn has_begun() -> bool {
    STATE.load(Relaxed) != NOT_YET
}

/// Begins the start; false if another call already has.
pub(crate) fn begin() -> bool {
    STATE.compare_exchange(NOT_YET, STARTING, AcqRel, Relaxed).is_ok()
}

/// Records the end of the start.
pub(crate) fn started() {
    STATE.store(STARTED, Release);
}

pub(crate) fn is_started() -> bool {
    STATE.load(Acquire) >= STARTED
}

/// True if the heap has started and new objects are not watched.
#[inline(always)]
pub(crate) fn is_plain() -> bool {
    STATE.load(Acquire) == STARTED
}

/// Makes allocations watch their objects. The heap has started.
pub(crate) fn watch_objects() {
    let _ = STATE.compare_exchange(STARTED, WATCHED, AcqRel, Relaxed);
}
