//! The idle thread's state: whether it is wanted, whether it was made, and its wake-up.
//!
//! It is apart from that thread, so that the code that wakes it does not depend on its work.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use vellum_sys::thread as futex;

/// There is work for it once one part in this many of the allocation budget was used. Nobody has asked for
/// the collection, so it is not made long before it is due.
pub(crate) const WORTH_PART: usize = 2;

/// Nobody asks for it.
const UNWANTED: u32 = 0;
/// It is to be made.
const WANTED: u32 = 1;
/// It has been made.
const MADE: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNWANTED);
/// Changes when it is poked.
static POKES: AtomicU32 = AtomicU32::new(0);
/// Whether there may be something to do.
static WORK: AtomicBool = AtomicBool::new(false);

/// Asks for the thread, which is made when it is first of use.
pub(crate) fn want() {
    STATE.store(WANTED, Ordering::Release);
}

/// In a forked child: it has stayed with the parent.
pub(crate) fn forget() {
    if STATE.load(Ordering::Relaxed) == MADE {
        want();
    }
}

/// Wakes it if there is something to do. The caller is blocked, or no mutator any more.
#[inline]
pub(crate) fn poke() {
    if WORK.load(Ordering::Relaxed) && STATE.load(Ordering::Relaxed) == MADE {
        POKES.fetch_add(1, Ordering::Release);
        futex::wake(&POKES);
    }
}

/// Whether it is to be made.
#[inline]
pub(crate) fn is_wanted() -> bool {
    STATE.load(Ordering::Relaxed) == WANTED
}

/// Whether the caller is the one to make it.
pub(crate) fn is_claimed() -> bool {
    STATE.compare_exchange(WANTED, MADE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Enough was allocated for idle time to be used.
#[inline]
pub(crate) fn note_work() {
    if !WORK.load(Ordering::Relaxed) {
        WORK.store(true, Ordering::Relaxed);
    }
}

/// There is nothing to do.
pub(crate) fn no_work() {
    WORK.store(false, Ordering::Relaxed);
}

/// A number that changes when it is woken.
pub(crate) fn pokes() -> u32 {
    POKES.load(Ordering::Acquire)
}

/// Waits until [`pokes`] differs from `seen`, or for `ns` nanoseconds.
pub(crate) fn wait(seen: u32, ns: u64) {
    futex::wait(&POKES, seen, ns);
}
