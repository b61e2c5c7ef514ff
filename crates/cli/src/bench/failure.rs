//! The errors of `vellum bench`.

use crate::failure::Failure;
use std::ffi::OsString;
use vellum_experiment::process_duel::{CountError, ProcessDuelError};
use vellum_measure::CompareError;
use vellum_measure::line::WriteError;
use vellum_process::LocateError;
use vellum_timing::bench;

/// An error of `vellum bench`.
#[derive(Debug, thiserror::Error)]
pub(super) enum BenchFailure {
    /// A program is missing beside the separator.
    #[error("there is no program {side} {separator:?}; write COMMAND {} COMMAND", .separator.display())]
    NoProgram { side: &'static str, separator: OsString },
    /// An unknown or removed option, which the command line took for the program.
    #[error("there is no option {0:?}; `vellum bench --help` lists the options (a program of that name: ./{name})", name = .0.display())]
    NoOption(OsString),
    /// Too many programs.
    #[error("{count} programs are too many to compare: {most} at most")]
    Many { count: usize, most: usize },
    /// A parameter without values, or otherwise invalid.
    #[error("the parameter {name:?}: {why}")]
    Parameter { name: String, why: &'static str },
    /// The other revision could not be checked out or built.
    #[error("the revision {name:?}: {why}")]
    Revision { name: String, why: String },
    /// Contradictory options.
    #[error("{0}")]
    Options(&'static str),
    /// The processor does not count instructions.
    #[error(
        "{0}; --counter valgrind counts instructions wherever valgrind is installed, 4 to 30 times as slowly"
    )]
    Counter(CountError),
    #[error("--counter valgrind: {0}; install valgrind, or use the processor's counter (--counter hardware)")]
    Valgrind(LocateError),
    /// Programs could not be timed.
    #[error("{0}")]
    Duel(ProcessDuelError),
    /// A suite could not be run.
    #[error(transparent)]
    Suite(#[from] bench::BenchError),
    #[error("no case of the suite {suite} has {only:?} in its name; there are: {names}")]
    NoCase { suite: String, only: String, names: String },
    /// Figures that cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// Observations cannot be written.
    #[error(transparent)]
    Lines(#[from] WriteError),
}

impl From<ProcessDuelError> for BenchFailure {
    fn from(error: ProcessDuelError) -> BenchFailure {
        match error {
            ProcessDuelError::Count(error @ (CountError::Hardware { .. } | CountError::Shared { .. })) => {
                BenchFailure::Counter(error)
            }
            other => BenchFailure::Duel(other),
        }
    }
}

impl From<BenchFailure> for Failure {
    fn from(failure: BenchFailure) -> Failure {
        match failure {
            // The exit status shows why a program could not be started.
            BenchFailure::Duel(ProcessDuelError::Spawn(error)) => Failure::Spawn(error),
            other => Failure::of(other),
        }
    }
}
