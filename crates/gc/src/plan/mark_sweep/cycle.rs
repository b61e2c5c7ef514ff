//! A collection in slices that is under way.

use crate::config::TRACE_NS_A_KIB;
use crate::plan::mark_sweep::sticky::Sticky;
use crate::trace::mark::Paused;
use crate::write_tracking::Dirty;

/// Passes before the end, at most.
const PASSES_MAX: u32 = 4;
/// Written bytes found by a pass from which another pass is made. That is done only if this pass found less
/// than three quarters of what the one before had found: a program may write faster than its writes can be
/// scanned. The slices of such a pass follow each other at once, so that little is written meanwhile.
const WRITTEN_MANY: usize = 256 << 10;

/// The stage that a cycle has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Write tracking is being armed, from this address on. Nothing is marked yet.
    Arm(usize),
    /// All writes are tracked.
    Start,
    Mark,
    /// Scanning the written parts of the heap, from this address on.
    Pass(usize),
    /// All but the last stop is done.
    Ready,
}

/// A collection that is under way.
pub(crate) struct Cycle {
    pub left: Paused,
    pub dirty: Dirty,
    pub phase: Phase,
    /// Old marks stay.
    pub is_partial: bool,
    pub passes: u32,
    /// Bytes found written in the last pass, or in this one so far, and in the one before.
    pub written: usize,
    pub written_before: usize,
    /// Pages that the program has written since the last cycle, each at the cost of a fault.
    pub faults: usize,
    /// Bytes allocated at which the next slice is due.
    pub due: usize,
    /// Bytes allocated between slices.
    pub quantum: usize,
    pub spent_ns: u64,
}

impl Cycle {
    /// Whether so much was written that the end would take long, and another pass would find less.
    pub(crate) fn is_behind(&self) -> bool {
        self.passes > 0
            && self.passes < PASSES_MAX
            && self.written > WRITTEN_MANY
            && (self.passes == 1 || self.written < self.written_before / 4 * 3)
    }
}

/// The state of collections in slices, between their slices and between each other.
pub(crate) struct Incremental {
    /// The collection in slices that is on.
    pub cycle: Option<Cycle>,
    /// Slices are made in idle time.
    pub is_idle: bool,
    /// Decides when old marks are kept.
    pub sticky: Sticky,
    /// A cycle could not be begun since the last collection.
    pub slicing_failed: bool,
    /// Nanoseconds that the last whole collection took for a KiB of the heap.
    pub ns_a_kib: u64,
    /// Nanoseconds of CPU time that the last end of a cycle took.
    pub end_ns: u64,
}

impl Incremental {
    pub(crate) const fn new() -> Incremental {
        Incremental {
            cycle: None,
            is_idle: false,
            sticky: Sticky::new(),
            slicing_failed: false,
            ns_a_kib: TRACE_NS_A_KIB,
            end_ns: 0,
        }
    }
}

/// The outcome of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    /// The cycle is at its end: a collection has been made.
    Done,
    /// Nothing was done, and will not be before the next collection.
    Nothing,
}
