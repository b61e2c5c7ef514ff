//! Undoes the changes of a governor that was killed together with its guardians.
//!
//! The next governor in the same directory does the same; this function serves if no governor is started.

use crate::place::{self, PlaceError};
use crate::record::{Record, Recovered};
use std::io;
use std::path::{Path, PathBuf};

/// The record cannot be opened; nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// A governor is there, or the directory is not ours.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The record cannot be read.
    #[error("{}: cannot be read ({call}: {source}); run this command as the user who ran the governor", .path.display())]
    Record {
        /// Its file.
        path: PathBuf,
        /// Which call failed.
        call: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// Resumes every process, puts back every file and removes every empty group that the last governor in
/// `directory` (the usual one if `None`) has left. `None` if it has left no record.
pub fn recover(directory: Option<&Path>) -> Result<Option<Recovered>, RecoverError> {
    let directory = directory.map_or_else(place::usual, Path::to_path_buf);
    if !directory.exists() {
        return Ok(None);
    }
    place::without_governor(&directory)?;
    Record::undo(&directory).map_err(|(call, source)| {
        let path = Record::file(&directory);
        RecoverError::Record { path, call, source }
    })
}
