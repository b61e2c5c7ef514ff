//! The events that a watch reports, such as a process that joins. No event is a failure of the watch.

use std::time::Duration;
use vellum_kernel::Pid;

/// An event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are what they are called")]
pub enum Event {
    /// A process is part of the job that was not before.
    Joined { pid: Pid, name: String },
    /// A process executed another program: its memory is a new one.
    Executed { pid: Pid, name: String },
    /// A process has ended, or left.
    Left { pid: Pid, name: String },
    /// A process cannot be looked into any more, or never could: it is left out.
    Lost { pid: Pid, why: String },
    /// The source was cleared: a cycle begins.
    Cleared,
    /// References since the clearing were counted.
    Looked {
        /// User CPU time since the clearing.
        window: Duration,
        /// Pages (of 4 KiB) referenced in it.
        pages: u64,
    },
    /// The memory not touched for some wall-clock time was counted.
    Aged { untouched: Duration },
    /// The references since the clearing can no longer be determined: the cycle is dropped, and another will
    /// begin.
    Spoiled { why: &'static str },
    /// A cycle has ended, and the history has a sample more.
    Cycle { samples: u64 },
    /// The job runs another program than before; its history is dropped.
    Restarted,
    /// No process of the job is left.
    Ended,
}
