//! The helper's rest: the moment after a fork in which none is started.
//!
//! The kernel counts the helper as a thread of the process, and some programs ask it for that number: CPython
//! from 3.12 on warns right after `fork` if there is more than one. So a program of one thread forks without
//! its helper, which returns with the first memory that is cached after the rest. A forked child has none.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_sys::clock;

/// Programs ask within a millisecond, unless they are kept off the processor in between.
const REST_NS: u64 = 50_000_000;

/// When the rest is over; 0 if there is none.
static ENDS_NS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn begin() {
    ENDS_NS.store(clock::now_ns() + REST_NS, Relaxed);
}

pub(crate) fn is_on() -> bool {
    let ends = ENDS_NS.load(Relaxed);
    if ends == 0 {
        return false;
    }
    let is_on = clock::now_ns() < ends;
    if !is_on {
        ENDS_NS.store(0, Relaxed);
    }
    is_on
}

pub(crate) fn reset_after_fork() {
    ENDS_NS.store(0, Relaxed);
}
