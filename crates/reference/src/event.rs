//! What happens while a job is watched. None of it is a failure of the watch.

use std::time::Duration;
use vellum_process::Pid;

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process is part of the job that was not before.
    Joined {
        /// Which.
        pid: Pid,
        /// Its command's name.
        name: String,
    },
    /// A process executed another program: its memory is a new one.
    Executed {
        /// Which.
        pid: Pid,
        /// The new name.
        name: String,
    },
    /// A process has ended, or left.
    Left {
        /// Which.
        pid: Pid,
        /// Its name.
        name: String,
    },
    /// A process cannot be looked into any more, or never could: it is left out.
    Lost {
        /// Which.
        pid: Pid,
        /// Why, and what to do.
        why: String,
    },
    /// The source was cleared: a cycle begins.
    Cleared,
    /// References since the clearing were counted.
    Looked {
        /// User CPU time since the clearing.
        window: Duration,
        /// Pages (of 4 KiB) referenced in it.
        pages: u64,
    },
    /// What was not touched for some wall-clock time was counted.
    Aged {
        /// For how long.
        untouched: Duration,
    },
    /// The references since the clearing can no longer be determined: the cycle is dropped, and another will
    /// begin.
    Spoiled {
        /// Why.
        why: &'static str,
    },
    /// A cycle has ended, and the history has a sample more.
    Cycle {
        /// How many samples there are.
        samples: u64,
    },
    /// The job runs another program than before; its history is dropped.
    Restarted,
    /// No process of the job is left.
    Ended,
}
