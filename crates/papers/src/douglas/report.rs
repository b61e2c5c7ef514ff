//! The whole result: as JSON, and its figures as files.

use super::{Bench, Scale};
use crate::{Finding, clock};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use vellum_probe::campaign::Machine;

/// Name and version of the JSON. A field's meaning never changes; new ones may come.
pub const SCHEMA: &str = "vellum.papers.douglas/1";

/// All that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `full`, `quick` or `tiny`.
    pub scale: &'static str,
    /// The seed of all random orders.
    pub seed: u64,
    /// What figures named `cycles` count: the time-stamp counter's cycles, or `ns` where there is none.
    pub cycles_are: &'static str,
    /// What was measured on.
    pub machine: Machine,
    /// The allocators here, name and version.
    pub peers: Vec<(&'static str, String)>,
    /// The allocators not here, name and how to get it.
    pub missing: Vec<(&'static str, String)>,
    /// One an experiment.
    pub experiments: Vec<Finding>,
}

/// Figures could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the figure {path}: {source}; is the directory there and writable?")]
pub struct ReportError {
    /// The file or directory.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl Report {
    pub(super) fn new(bench: &Bench<'_>, experiments: Vec<Finding>) -> Self {
        let scale = match bench.scale {
            Scale::Full => "full",
            Scale::Quick => "quick",
            Scale::Tiny => "tiny",
        };
        Self {
            schema: SCHEMA,
            scale,
            seed: bench.seed,
            cycles_are: clock::UNIT,
            machine: Machine::here(),
            peers: bench.peers().iter().map(|peer| (peer.name, peer.version.clone())).collect(),
            missing: bench.missing().iter().map(|missing| (missing.name, missing.cure.clone())).collect(),
            experiments,
        }
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

/// Writes the figures of a finding into `folder` as SVG, and returns their paths.
///
/// # Errors
/// [`ReportError`] naming what could not be written.
pub fn write_figures(finding: &Finding, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ReportError { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut written = Vec::new();
    for figure in &finding.figures {
        let path = folder.join(figure.name).with_extension("svg");
        std::fs::write(&path, figure.svg()).map_err(failed(&path))?;
        written.push(path);
    }
    Ok(written)
}
