//! The failure of a subcommand: a message, and the exit status for it.
//!
//! Every message names the operation, the value and the remedy.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::Path;
use vellum_process::{LocateError, SpawnError};
use vellum_report::OutputError;
pub(crate) use vellum_report::exit::{FAILED, SIGNALLED};

/// The exit status for a program that cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The exit status for a program that does not exist.
const NOT_FOUND: u8 = 127;

/// Any error of the libraries, or a message. Not an [`Error`] itself, so that every error converts to it.
#[derive(Debug)]
pub(crate) struct Failure {
    why: Box<dyn Error>,
    status: u8,
}

impl Failure {
    pub(crate) fn because(message: impl Into<String>) -> Failure {
        Failure { why: message.into().into(), status: FAILED }
    }

    pub(crate) fn with_status(self, status: u8) -> Failure {
        Failure { status, ..self }
    }

    /// A signal ended a comparison before the first complete round.
    pub(crate) fn stopped(signal: i32) -> Failure {
        let message = format!("stopped by signal {signal} before the first pair was complete");
        Failure::because(message).with_status(SIGNALLED + signal as u8)
    }

    /// The path cannot be written in LD_PRELOAD, and the link to the library could not be created.
    pub(crate) fn link(error: io::Error) -> Failure {
        Failure::because(format!(
            "cannot link to the library, whose path has a blank or a colon ({error}); use --lib with a path that has none"
        ))
    }

    pub(crate) fn wait(error: io::Error) -> Failure {
        Failure::because(format!("cannot wait for the program ({error}); its own exit status is lost"))
    }

    /// The file of a profile was not created or cannot be read.
    pub(crate) fn profile(error: io::Error) -> Failure {
        Failure::because(format!("cannot make a file for the profile ({error}); make some room in /dev/shm"))
    }

    pub(crate) fn open(path: &Path, error: io::Error) -> Failure {
        Failure::because(format!("cannot open {}: {error}", path.display()))
    }

    pub(crate) fn output(path: impl AsRef<Path>, source: io::Error) -> Failure {
        OutputError { path: path.as_ref().into(), source }.into()
    }

    /// The error, if it is of this type.
    pub(crate) fn error<E: Error + 'static>(&self) -> Option<&E> {
        self.why.downcast_ref()
    }

    /// The exit status for this failure.
    pub(crate) fn status(&self) -> u8 {
        match (self.error(), self.error()) {
            (Some(LocateError::NotFound(_)), _) | (_, Some(SpawnError::NotFound(_))) => NOT_FOUND,
            (Some(LocateError::NotExecutable { .. }), _) | (_, Some(SpawnError::NotExecutable { .. })) => {
                NOT_EXECUTABLE
            }
            _ => self.status,
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { why: Box::new(error), status: FAILED }
    }
}
