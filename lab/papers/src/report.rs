//! The common part of all papers' reports, written as JSON, with figures as files.

use crate::{Finding, Scale};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use vellum_measure::Machine;
use vellum_timing::machine;

/// A figure could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the figure {path}: {source}; is the directory there and writable?")]
pub struct FigureError {
    /// The file or directory.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// All findings; `Own` is the part that only one paper's report has.
#[derive(Debug, Clone, Serialize)]
pub struct Report<Own> {
    /// Name and version of the JSON. A field's meaning never changes; new ones may come.
    pub schema: &'static str,
    /// `full`, `quick` or `tiny`.
    pub scale: &'static str,
    /// The seed of all random orders; of several, the first.
    pub seed: u64,
    /// The machine measured on.
    pub machine: Machine,
    /// The findings, one for each experiment.
    pub experiments: Vec<Finding>,
    /// Additional fields of the JSON.
    #[serde(flatten)]
    pub own: Own,
}

impl<Own: Serialize> Report<Own> {
    pub(crate) fn new(
        schema: &'static str,
        scale: Scale,
        seed: u64,
        experiments: Vec<Finding>,
        own: Own,
    ) -> Self {
        Self { schema, scale: scale.name(), seed, machine: machine::read(), experiments, own }
    }

    /// The report as JSON, ending in a newline.
    #[must_use]
    pub fn json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("maps with text keys and finite numbers are JSON");
        text.push('\n');
        text
    }
}

/// Writes figures, by name and as SVG, into `folder`, and returns their paths.
///
/// # Errors
/// [`FigureError`] with the file that could not be written.
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
