//! Why suites could not be compared.

use super::Framework;
use crate::process_duel::ProcessDuelError;
use crate::process_duel::{ended, said};
use std::io;
use std::path::PathBuf;
use vellum_process::{Outcome, SpawnError};

/// Two suites could not be compared at all. A single benchmark that fails is no such error.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A suite could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A step before or after a run failed.
    #[error(transparent)]
    Step(#[from] ProcessDuelError),
    /// There is no folder for results.
    #[error("cannot keep the suites' results in {}: {source}", .folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A suite does not list its benchmarks.
    #[error(
        "{suite} ({program}) does not list its benchmarks as {framework} does: it {}{}; {needs}",
        ended(outcome),
        said(last)
    )]
    NotListed {
        /// `A` or `B`.
        suite: &'static str,
        /// Its program.
        program: String,
        /// What it should be of.
        framework: Framework,
        /// How listing ended.
        outcome: Outcome,
        /// The last that it said.
        last: String,
        /// What would do.
        needs: &'static str,
    },
    /// A list cannot be read.
    #[error("{suite} ({program}) does not list its benchmarks as {framework} does: {why}; {needs}")]
    Unreadable {
        /// `A` or `B`.
        suite: &'static str,
        /// Its program.
        program: String,
        /// What it should be of.
        framework: Framework,
        /// The reason.
        why: String,
        /// What would do.
        needs: &'static str,
    },
    /// A suite is empty.
    #[error("{suite} ({program}) has no benchmarks of {framework}; {needs}")]
    Empty {
        /// `A` or `B`.
        suite: &'static str,
        /// Its program.
        program: String,
        /// What it should be of.
        framework: Framework,
        /// What would do.
        needs: &'static str,
    },
    /// No name has what was asked for.
    #[error("no benchmark has {only:?} in its name; A has: {names}")]
    NoneChosen {
        /// The text that was looked for.
        only: String,
        /// What there is.
        names: String,
    },
    /// Nothing to compare.
    #[error("A and B have no benchmark in common; A has: {a}; B has: {b}")]
    NothingCommon {
        /// Benchmarks of A.
        a: String,
        /// Benchmarks of B.
        b: String,
    },
    /// Every benchmark failed.
    #[error("no benchmark could be measured: {first}")]
    AllFailed {
        /// What became of the first.
        first: String,
    },
    /// A signal asked to stop before a benchmark had a round.
    #[error("stopped by signal {signal} before anything was measured")]
    Interrupted {
        /// The signal.
        signal: i32,
    },
}
