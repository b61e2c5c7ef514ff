//! The whole result: as JSON, as lines of observations, and its figures as files.

use super::Drawing;
use super::bases::Bases;
use crate::{FigureError, Finding, Scale, report};
use serde::Serialize;
use std::path::{Path, PathBuf};
use vellum_measure::line::{WriteError, write_series};
use vellum_measure::{Machine, Series};
use vellum_probe::machine;

/// Name and version of the JSON. A field's meaning never changes; new ones may come.
pub const SCHEMA: &str = "vellum.papers.bates/1";

/// All that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `full`, `quick` or `tiny`.
    pub scale: &'static str,
    /// The seed of the order of rounds.
    pub seed: u64,
    /// What was measured on.
    pub machine: Machine,
    /// One an experiment.
    pub experiments: Vec<Finding>,
    /// Every BASE, a round each, as in schema `vellum.observations/1`. Labels: the kind of stamp, the round.
    pub series: Vec<Series>,
}

impl Report {
    pub(super) fn new(scale: Scale, seed: u64, bases: Bases, experiments: Vec<Finding>) -> Self {
        Self {
            schema: SCHEMA,
            scale: scale.name(),
            seed,
            machine: machine::read(),
            experiments,
            series: bases.into_series(),
        }
    }

    /// The report as JSON, ending in a newline.
    #[must_use]
    pub fn json(&self) -> String {
        report::json(self)
    }

    /// Every observation as lines.
    ///
    /// # Errors
    /// None that can occur: the series come from clocks and memory takes them.
    pub fn lines(&self) -> Result<Vec<u8>, WriteError> {
        let mut text = Vec::new();
        self.series.iter().try_for_each(|series| write_series(&mut text, series))?;
        Ok(text)
    }
}

/// Writes figures into `folder` as SVG, and returns their paths.
///
/// # Errors
/// [`FigureError`] naming what could not be written.
pub fn write_drawings(drawings: &[Drawing], folder: &Path) -> Result<Vec<PathBuf>, FigureError> {
    let figures = drawings.iter().map(|drawing| (drawing.name, drawing.plot.svg()));
    report::write_svgs(figures, folder)
}
