//! The error type of all subcommands, and the exit status for each error.
//!
//! This file has the failures that several subcommands share. A failure of a single subcommand is a type in
//! that subcommand's folder, and is wrapped in [`Failure::Subcommand`].
//!
//! Every message names the operation, the value and the remedy.

use std::error::Error;
use std::io;
use vellum_governor::StopError;
use vellum_process::library::LibraryError;
use vellum_process::{BoardError, LocateError, SignalError, SpawnError};
use vellum_report::OutputError;
pub(crate) use vellum_report::exit::{FAILED, SIGNALLED};

/// The exit status for a program that cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The exit status for a program that does not exist.
const NOT_FOUND: u8 = 127;

/// The error of a subcommand.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The program was not found or cannot be run.
    #[error(transparent)]
    Locate(#[from] LocateError),
    /// The program could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The board could not be created.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// Signal handlers could not be installed.
    #[error(transparent)]
    Signals(#[from] SignalError),
    /// Handlers for stop signals could not be installed.
    #[error(transparent)]
    Stop(#[from] StopError),
    /// A library that is preloaded, or a program that belongs to this command, is missing.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The path cannot be written in LD_PRELOAD, and the link to the library could not be created.
    #[error(
        "cannot link to the library, whose path has a blank or a colon ({0}); use --lib with a path that has none"
    )]
    Link(#[source] io::Error),
    /// The program could not be waited for.
    #[error("cannot wait for the program ({0}); its own exit status is lost")]
    Wait(#[source] io::Error),
    /// A report could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A file that a run of a comparison needs could not be opened.
    #[error("cannot open {what} for a run of the comparison: {source}")]
    Open { what: &'static str, source: io::Error },
    /// A run of a comparison failed.
    #[error("the command failed {occasion} ({how}); a comparison needs a command that succeeds{said}")]
    Command {
        occasion: String,
        how: String,
        /// The end of its standard error, if that was not shown.
        said: String,
        status: u8,
    },
    /// A signal ended a comparison before the first complete round.
    #[error("stopped by signal {signal} before the first pair was complete")]
    Stopped { signal: i32 },
    /// A failure of a single subcommand.
    #[error("{0}")]
    Subcommand(#[source] Box<dyn Error>),
}

impl Failure {
    /// Wraps a failure of a single subcommand.
    pub(crate) fn of(error: impl Error + 'static) -> Failure {
        Failure::Subcommand(Box::new(error))
    }

    /// The exit status for this failure.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Locate(LocateError::NotFound(_)) | Failure::Spawn(SpawnError::NotFound(_)) => NOT_FOUND,
            Failure::Locate(LocateError::NotExecutable { .. })
            | Failure::Spawn(SpawnError::NotExecutable { .. }) => NOT_EXECUTABLE,
            Failure::Command { status, .. } => *status,
            Failure::Stopped { signal } => SIGNALLED + *signal as u8,
            _ => FAILED,
        }
    }
}
