//! A pause (*rest*) after a fork, in which the background thread (`helper`) is not started.
//!
//! The kernel counts the helper as a thread of the process, and some programs read that number: CPython from
//! 3.12 on warns right after `fork` if there is more than one. In a program of one thread the helper
//! therefore ends before a fork. It starts again with the first memory that is cached after the rest. A
//! forked child has no rest.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_sys::clock;

/// Programs read the number within a millisecond, unless they are kept off the processor in between.
const REST_NS: u64 = 50_000_000;

pub(crate) struct Rest {
    ends_ns: AtomicU64,
}

impl Rest {
    pub(crate) const fn new() -> Rest {
        Rest { ends_ns: AtomicU64::new(0) }
    }

    pub(crate) fn begin(&self) {
        self.ends_ns.store(clock::now_ns() + REST_NS, Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        let ends = self.ends_ns.load(Relaxed);
        if ends == 0 {
            return false;
        }
        let is_on = clock::now_ns() < ends;
        if !is_on {
            self.reset_after_fork();
        }
        is_on
    }

    pub(crate) fn reset_after_fork(&self) {
        self.ends_ns.store(0, Relaxed);
    }
}
