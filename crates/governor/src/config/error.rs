//! The error type for job tables: the line, the fault, and the remedy.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A job table that is not taken.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}; name a job table that this user may read", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file is no job table by its size.
    #[error("{}: {bytes} bytes: a job table is at most {} bytes", .path.display(), super::TABLE_BYTES_MAX)]
    TooLong { path: PathBuf, bytes: u64 },
    /// A line has an invalid value.
    #[error("{}:{line}: {reason}", .path.display())]
    Line {
        path: PathBuf,
        line: usize,
        /// The fault and the cure.
        reason: String,
    },
}

/// A text in which errors have lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl Place<'_> {
    pub(super) fn error(&self, span: &Range<usize>, reason: String) -> ConfigError {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        ConfigError::Line { path: self.path.to_path_buf(), line, reason }
    }

    pub(super) fn toml(&self, error: &toml::de::Error) -> ConfigError {
        let message = error.message().trim().replace('\n', ", ");
        self.error(&error.span().unwrap_or(0..0), message)
    }
}
