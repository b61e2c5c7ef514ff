//! The events that the governor reports to people and programs: its actions, and changes of its jobs.

use crate::policy::Limit;
use serde::Serialize;

/// An event of the governor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
#[expect(missing_docs, reason = "the fields are what they are called")]
pub enum Event {
    /// A job's program was started.
    Started {
        job: String,
        pid: i32,
        /// By what means memory can be taken from it.
        means: &'static str,
    },
    /// A job that ran already is governed from now on.
    Adopted {
        job: String,
        processes: usize,
        /// By what means memory can be taken from it.
        means: &'static str,
    },
    /// A job's program could not be started.
    NotStarted { job: String, why: String },
    /// No process of a job is left.
    Ended {
        job: String,
        /// The status of its first process, if the governor started it.
        how: String,
    },
    /// A job will be started again.
    WillRestart { job: String, seconds: f64 },
    /// A job's worth was found, or has changed.
    Knee {
        job: String,
        /// "knee", "needs nothing more", "takes all it is given".
        answer: &'static str,
        /// The window, in seconds of its user CPU time.
        window_seconds: f64,
        /// The working set at that window.
        bytes: u64,
        /// S·f there.
        waiting: f64,
    },
    /// A job cannot be watched; its worth is the memory that it holds.
    Unwatched { job: String, why: String },
    /// A job was suspended whole.
    Suspended { job: String, because: Limit },
    /// A job should have been suspended and runs.
    NotSuspended { job: String, why: String },
    /// A job was resumed.
    Resumed {
        job: String,
        /// The time that it was suspended, in seconds.
        after_seconds: f64,
    },
    /// Memory was taken from a job.
    Took { job: String, bytes: u64, means: &'static str },
    /// Tasks stall on memory more than they may, for this part of the time: nothing is taken.
    Brake { stalled: f64 },
    /// They no longer do.
    Calm,
    /// An earlier governor here was killed together with its guardians. Its stopped processes run again, its
    /// files are restored, and its groups are removed.
    Recovered { processes: usize, files: usize, groups: usize },
    /// The guardian has ended, or has undone everything because the governor was silent for too long.
    Guardian { what: &'static str },
    /// The governor stops: every job runs, without any limit of ours.
    Stopped { running: usize },
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: &u64| *bytes as f64 / f64::from(1u32 << 20);
        match self {
            Event::Started { job, pid, means } => write!(f, "{job}: started, process {pid} ({means})"),
            Event::Adopted { job, processes, means } => {
                write!(f, "{job}: adopted, processes: {processes} ({means})")
            }
            Event::NotStarted { job, why } => write!(f, "{job}: not started: {why}"),
            Event::Ended { job, how } => write!(f, "{job}: ended: {how}"),
            Event::WillRestart { job, seconds } => {
                write!(f, "{job}: will be started again in {seconds:.0} s")
            }
            Event::Knee { job, answer, window_seconds, bytes, waiting } => write!(
                f,
                "{job}: {answer}: {:.1} MiB at a window of {window_seconds:.2} s (waiting {:.2} %)",
                mib(bytes),
                waiting * 100.0
            ),
            Event::Unwatched { job, why } => write!(f, "{job}: not watched: {why}"),
            Event::Suspended { job, because } => write!(f, "{job}: suspended: {}", because.words()),
            Event::NotSuspended { job, why } => write!(f, "{job}: not suspended: {why}"),
            Event::Resumed { job, after_seconds } => write!(f, "{job}: resumed after {after_seconds:.1} s"),
            Event::Took { job, bytes, means } => write!(f, "{job}: took {:.1} MiB by {means}", mib(bytes)),
            Event::Brake { stalled } => {
                write!(f, "brake: tasks stall on memory {:.0} % of the time", stalled * 100.0)
            }
            Event::Calm => write!(f, "brake: off"),
            Event::Recovered { processes, files, groups } => write!(
                f,
                "undone what a killed governor has left: processes resumed {processes}, files put back {files}, groups removed {groups}"
            ),
            Event::Guardian { what } => write!(f, "guardian: {what}"),
            Event::Stopped { running } => write!(f, "stopped; jobs that go on: {running}"),
        }
    }
}
