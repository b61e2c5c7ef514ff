//! Errors of a duel of programs.

use std::io;
use std::path::PathBuf;
use vellum_kernel::machine::{PERF_PARANOID, setting};
use vellum_process::{Outcome, SpawnError};
use vellum_timing::clock::ClockError;

/// The line of valgrind's file that has the total.
pub(super) const TOTALS: &str = "summary:";

/// Errors of a duel of processes.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ProcessDuelError {
    /// The clock is not available.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A program could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The input cannot be opened.
    #[error("cannot read the programs' input {path}: {source}")]
    Input { path: PathBuf, source: io::Error },
    /// The files for the output failed.
    #[error("cannot keep the programs' output: {0}")]
    Output(#[source] io::Error),
    /// A process failed.
    #[error("{arm} ({program}) {}{}; fix it, or ignore failures (-i)", ended(outcome), said(last))]
    Failed {
        /// The arm: `A`, `A'`, `B` and so on.
        arm: String,
        program: String,
        outcome: Outcome,
        /// The last line on its standard error, if it was kept.
        last: String,
    },
    /// Instructions could not be counted.
    #[error(transparent)]
    Count(#[from] CountError),
    /// A step before or after a run failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A signal came before a round was complete.
    #[error("stopped by signal {0} before anything was measured")]
    Interrupted(i32),
    /// Two processes wrote different output.
    #[error(
        "{arm} ({program}) wrote something else than the first process did, from byte {at} on; are they to do the same?"
    )]
    Differs {
        arm: String,
        program: String,
        /// The first byte that differs, counted from 0.
        at: u64,
    },
}

/// A step failed.
#[derive(Debug, thiserror::Error)]
#[error("{what} ({command}) {}{}", ended(outcome), said(last))]
pub struct StepError {
    /// The purpose of the step, such as "prepare".
    pub what: &'static str,
    /// The last word of the command: for a shell, the script.
    pub command: String,
    /// The way it ended.
    pub outcome: Outcome,
    /// The last line on its standard error.
    pub last: String,
}

/// Instructions could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The processor's counter is not available.
    #[error(
        "the processor's counter of instructions cannot be read here (perf_event_open: {}): {}",
        .0,
        cure(.0)
    )]
    Hardware(#[source] io::Error),
    /// Another user had the counter for part of the time.
    #[error(
        "the processor counted instructions for only {running_ns} of {enabled_ns} ns; end other profilers, set kernel.nmi_watchdog to 0, or pin the program to one kind of processor (taskset)"
    )]
    Shared {
        /// The time in which the event was enabled.
        enabled_ns: u64,
        /// The time in which the event had a counter.
        running_ns: u64,
    },
    /// Valgrind's files cannot be written or read.
    #[error("cannot keep or read what valgrind counted in {path}: {source}")]
    Files {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file has no total.
    #[error("valgrind's file {0} has no line \"{TOTALS} NUMBER\"; is it of another tool than cachegrind?")]
    Totals(PathBuf),
    /// Valgrind wrote no file.
    #[error("valgrind counted nothing of {0}: it cannot run it, or a SIGKILL from elsewhere ended it")]
    Nothing(String),
}

/// The remedy for an error of `perf_event_open`.
fn cure(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let level = setting(PERF_PARANOID).unwrap_or_default();
            format!(
                "permission is missing; set {PERF_PARANOID} to 2 or less (it is {level}), or, in a container, permit the call"
            )
        }
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            "it has none, or is a virtual machine's that was lent none".to_owned()
        }
        Some(libc::ENOSYS) => "the kernel was built without perf events, or a filter hides them".to_owned(),
        Some(libc::EMFILE) => "raise the limit on open files (ulimit -n)".to_owned(),
        _ => "the kernel refused".to_owned(),
    }
}

pub(super) fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited(status) => format!("exited with status {status}"),
        Outcome::Killed { signal, .. } => format!("was killed by signal {signal}"),
    }
}

pub(super) fn said(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!(" and printed: {last}") }
}
