//! Errors of a duel of programs.

use super::{CountError, DuetError, StepError};
use std::io;
use std::path::PathBuf;
use vellum_process::{Outcome, SpawnError};
use vellum_timing::clock::ClockError;

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
    /// Two processes cannot run at the same time.
    #[error(transparent)]
    Duet(#[from] DuetError),
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

pub(super) fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited(status) => format!("exited with status {status}"),
        Outcome::Killed { signal, .. } => format!("was killed by signal {signal}"),
    }
}

pub(super) fn said(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!(" and printed: {last}") }
}
