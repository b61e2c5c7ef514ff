//! What the reports of all sources have in common: they are written as JSON, and their figures as files.

use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// A figure could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the figure {path}: {source}; is the directory there and writable?")]
pub struct FigureError {
    /// The file or directory.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// A report as JSON, ending in a newline.
pub(crate) fn json(report: &impl Serialize) -> String {
    let mut text =
        serde_json::to_string_pretty(report).expect("maps with text keys and finite numbers are JSON");
    text.push('\n');
    text
}

/// Writes figures, by name and as SVG, into `folder`, and returns their paths.
///
/// # Errors
/// [`FigureError`] naming what could not be written.
pub(crate) fn write_svgs<'a>(
    figures: impl Iterator<Item = (&'a str, String)>,
    folder: &Path,
) -> Result<Vec<PathBuf>, FigureError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| FigureError { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut written = Vec::new();
    for (name, svg) in figures {
        let path = folder.join(name).with_extension("svg");
        std::fs::write(&path, svg).map_err(failed(&path))?;
        written.push(path);
    }
    Ok(written)
}
