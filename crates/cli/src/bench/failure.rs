//! Why there is no result of a benchmark.

use crate::failure::Failure;
use std::ffi::OsString;
use std::path::PathBuf;
use vellum_experiment::process_duel::ProcessDuelError;
use vellum_measure::csv::CsvError;
use vellum_measure::line::WriteError;
use vellum_measure::{BaselineError, CompareError};
use vellum_timing::bench;

/// There is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum BenchFailure {
    /// A program is missing beside the separator.
    #[error("there is no program {side} {separator:?}; write COMMAND {} COMMAND", .separator.display())]
    NoProgram {
        /// Before or behind.
        side: &'static str,
        /// What stands between programs.
        separator: OsString,
    },
    /// More than two programs.
    #[error(
        "{separator:?} occurs {count} times in the command; only two programs can be compared. If a program has an \
         argument of that name, choose another word with --separator"
    )]
    Many {
        /// What stands between programs.
        separator: OsString,
        /// How often.
        count: usize,
    },
    /// Options that say two things.
    #[error("{0}")]
    Options(&'static str),
    /// Programs could not be timed.
    #[error("{0}")]
    Duel(#[from] ProcessDuelError),
    /// A suite could not be run.
    #[error(transparent)]
    Suite(#[from] bench::BenchError),
    /// No case was chosen.
    #[error("no case of the suite {suite} has {only:?} in its name; there are: {names}")]
    NoCase {
        /// The suite.
        suite: String,
        /// What was looked for.
        only: String,
        /// What there is.
        names: String,
    },
    /// Figures that cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A baseline cannot be used.
    #[error("{}: {source}", .path.display())]
    Baseline {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: BaselineError,
    },
    /// Observations cannot be written as CSV.
    #[error(transparent)]
    Csv(#[from] CsvError),
    /// Observations cannot be written.
    #[error(transparent)]
    Lines(#[from] WriteError),
}

impl From<BenchFailure> for Failure {
    fn from(failure: BenchFailure) -> Failure {
        match failure {
            // The exit status tells why a program could not be started.
            BenchFailure::Duel(ProcessDuelError::Spawn(error)) => Failure::Spawn(error),
            other => Failure::of(other),
        }
    }
}
