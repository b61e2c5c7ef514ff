//! The error of this crate: a message with the thing, the reason and the way out.
//!
//! Callers only print it. [`HttpError`](crate::HttpError) and [`ApiError`](crate::kube::ApiError) have
//! types of their own, because callers use them to decide whether to retry.

use std::fmt::Display;
use std::path::Path;

/// A failure, as a message for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);

impl Error {
    /// The error of a file that cannot be used; `way_out` is the advice.
    pub(crate) fn of(path: &Path, why: impl Display, way_out: &str) -> Error {
        Error(format!("{}: {why}; {way_out}", path.display()))
    }

    /// The error of a file that an option names.
    pub(crate) fn option(option: &str, path: &Path, why: impl Display, way_out: &str) -> Error {
        Error(format!("{option} {}", Error::of(path, why, way_out)))
    }
}
