//! Available memory: the nearest limit, memory that can be paged out, and a governor's advice. Callers that
//! can use more or less memory choose their size by this figure.
//!
//! Reading it takes some tens of microseconds. A caller that needs little passes the amount. Figures that
//! matter only when memory is short are then not read.

use crate::pages::Pages;
use crate::state::State;
use crate::tag::Kind;
use crate::units::PAGE;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vellum_sys::checks::Checks;
use vellum_sys::limits::{Available, Limits, SCRATCH};
use vellum_sys::lock::Guarded;
use vellum_sys::{Caps, caps, clock, limits};
use vellum_wire::Counter;

/// Reads between which the control group's place counts as unchanged.
const REDISCOVER: u64 = 256;
/// A limit of at most one part in this many of the machine's memory is a job's; a larger one protects the
/// machine.
const GIVEN_PART: u64 = 2;

/// Room for the kernel's texts. A static of zeros takes no bytes of the library's file.
static SCRATCH_SPACE: Guarded<[u8; SCRATCH]> = Guarded::new([0; SCRATCH]);

/// The limits on this process, and who checks them.
pub(crate) struct LimitWatch {
    limits: Guarded<Limits>,
    reads: AtomicU64,
    pub(crate) checks: Checks,
    /// The number of times the control group had run into a limit at the last read; `u64::MAX` before.
    pub(crate) distress: AtomicU64,
}

impl LimitWatch {
    pub(crate) const fn new() -> LimitWatch {
        LimitWatch {
            limits: Guarded::new(Limits::unknown()),
            reads: AtomicU64::new(0),
            checks: Checks::over(AtomicU32::new(0), AtomicU32::new(0)),
            distress: AtomicU64::new(u64::MAX),
        }
    }

    /// In a forked child, where the locks' holders do not exist and the limits may be half written.
    pub(crate) fn reset_after_fork(&self) {
        self.limits.raw().reset_after_fork();
        SCRATCH_SPACE.raw().reset_after_fork();
        self.reads.store(0, Ordering::Relaxed);
        self.checks.reset_after_fork();
        self.distress.store(u64::MAX, Ordering::Relaxed);
    }

    pub(crate) fn current(&self) -> Limits {
        if self.reads.fetch_add(1, Ordering::Relaxed).is_multiple_of(REDISCOVER) {
            let found = Limits::discover(&mut SCRATCH_SPACE.lock());
            *self.limits.lock() = found;
        }
        *self.limits.lock()
    }
}

/// The memory there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableMemory {
    /// Bytes that may still be taken, counting files' pages that the kernel would give up for them.
    pub available: u64,
    /// Bytes that may be paged out.
    pub swap: u64,
    /// True if a control group gives this job much less than the machine has. The job may use all of that.
    pub is_given: bool,
}

impl AvailableMemory {
    /// The value without any limit.
    pub const UNLIMITED: AvailableMemory =
        AvailableMemory { available: u64::MAX, swap: u64::MAX, is_given: false };
}

impl Pages {
    /// Available memory. Reads no further once `enough` bytes are available.
    pub fn available_memory(&self, enough: u64) -> AvailableMemory {
        if !caps::has(Caps::CGROUP) {
            return AvailableMemory::UNLIMITED;
        }
        let Available { bytes, swap, limit } = self.limits.current().available(enough);
        let is_given = limit <= limits::machine_total() / GIVEN_PART;
        AvailableMemory { available: bytes, swap, is_given }
    }

    /// Bytes that a heap of `held` bytes, cached memory among them, may grow to by a governor's advice, which
    /// is for the whole process. `None` without advice.
    pub fn advised(&self, held: u64) -> Option<u64> {
        let bytes = self.advised.bytes(clock::now_ms())?;
        let (live, cached) = self.live_and_cached();
        Some(bytes.saturating_sub((live + cached).saturating_sub(held)))
    }

    /// Bytes that are kept for reuse and may hold frames.
    pub fn cached(&self) -> u64 {
        self.live_and_cached().1
    }

    /// Bytes in use, less those known to have gone back inside it, and bytes kept for reuse.
    pub(crate) fn live_and_cached(&self) -> (u64, u64) {
        let state: &State = &self.state.lock();
        let gone = state.slot.get(Counter::NowReturned);
        ((state.live * PAGE as u64).saturating_sub(gone), state.free_pages(Kind::Warm) * PAGE as u64)
    }
}
