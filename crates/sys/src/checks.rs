//! Lets one thread make a slow check for all. No thread relies on a check that began before its own request.
//!
//! Many threads may find at the same time that a slow check is due. The first thread makes it, while the
//! others continue. Afterwards it checks again if others have requested it. A checking thread that takes too
//! long may have lost its processor. The next thread with a request then makes a check itself.
//!
//! Checks are numbered. If two overlap, the one with the lower number may have read older values and must not
//! overwrite the result of the other. Users of the results compare the numbers.
//!
//! # Invariants
//! * After [`Checks::request`] a check begins whose number is at least that of the request, in this thread or
//!   another one. If that check is delayed, the next thread with a request begins one.
//! * A thread makes at most a few checks (`AGAIN_MAX`) for the requests of others.
//!
//! The tests build this file over `loom`'s atomics and explore the interleavings (`tests/loom.rs`).

use crate::atomics::{AtomicU32, Ordering};

/// Milliseconds after which a check in progress is not relied on.
const PATIENCE_MS: u32 = 2;
const AGAIN_MAX: u32 = 4;

/// The requests for a check, and the check in progress.
#[derive(Debug)]
pub struct Checks {
    requested: AtomicU32,
    /// The start of the check in progress, in milliseconds with the lowest bit set; 0 without one.
    began: AtomicU32,
}

/// A check to be made.
#[derive(Debug)]
pub struct Check {
    /// Its number; wraps.
    pub number: u32,
    again: u32,
}

impl Checks {
    /// No checks yet, if both words are 0.
    pub const fn over(requested: AtomicU32, began: AtomicU32) -> Checks {
        Checks { requested, began }
    }

    /// Requests a check, at `now_ms` on any clock. Returns the caller's; `None` if another thread makes it.
    pub fn request(&self, now_ms: u32) -> Option<Check> {
        // In one order with the other accesses of both words: either the checking thread sees the request
        // when it is done, or the requesting thread sees that it is done.
        self.requested.fetch_add(1, Ordering::SeqCst);
        let began = self.began.load(Ordering::SeqCst);
        if began != 0 && now_ms.wrapping_sub(began) as i32 <= PATIENCE_MS as i32 {
            return None;
        }
        self.begin(now_ms, AGAIN_MAX)
    }

    /// Ends `check`. Returns the next one to make, if one was requested meanwhile.
    pub fn done(&self, check: &Check, now_ms: u32) -> Option<Check> {
        self.began.store(0, Ordering::SeqCst);
        let requested = self.requested.load(Ordering::SeqCst);
        if requested == check.number || check.again == 0 {
            return None;
        }
        self.begin(now_ms, check.again - 1)
    }

    /// A check that no other thread relies on: by a thread that may wait long for a processor.
    pub fn aside(&self) -> Check {
        Check { number: self.requested.load(Ordering::SeqCst), again: 0 }
    }

    /// True if the check `number` is older than the check `than`.
    pub fn is_older(number: u32, than: u32) -> bool {
        (number.wrapping_sub(than) as i32) < 0
    }

    /// In a forked child, where the checking thread does not exist.
    pub fn reset_after_fork(&self) {
        self.began.store(0, Ordering::SeqCst);
    }

    fn begin(&self, now_ms: u32, again: u32) -> Option<Check> {
        self.began.store(now_ms | 1, Ordering::SeqCst);
        Some(Check { number: self.requested.load(Ordering::SeqCst), again })
    }
}
