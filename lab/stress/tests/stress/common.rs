//! Helpers that the tests share.

use std::path::PathBuf;
use std::process::Output;
use vellum_conformance::library;
pub(crate) use vellum_conformance::skip;

pub(crate) fn libraries() -> PathBuf {
    library().parent().expect("a file lies in a folder").to_owned()
}

/// The command, beside the library.
pub(crate) fn vellum() -> PathBuf {
    libraries().join("vellum")
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
