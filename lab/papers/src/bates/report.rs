//! The report on Bates 1999: every BASE, also as lines of observations, and figures as files.

use super::Drawing;
use crate::{FigureError, report};
use serde::Serialize;
use std::path::{Path, PathBuf};
use vellum_measure::Series;
use vellum_measure::line::{WriteError, write_series};

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.bates/1";

/// The whole result.
pub type Report = report::Report<Own>;

/// The part that only this report has.
#[derive(Debug, Clone, Serialize)]
pub struct Own {
    /// Every BASE, one for each round, in schema `vellum.observations/1`. Labels: the kind of stamp, the
    /// round.
    pub series: Vec<Series>,
}

impl Report {
    /// Every observation as lines of text.
    ///
    /// # Errors
    /// Never: the series come from clocks, and writing to memory does not fail.
    pub fn lines(&self) -> Result<Vec<u8>, WriteError> {
        let mut text = Vec::new();
        self.own.series.iter().try_for_each(|series| write_series(&mut text, series))?;
        Ok(text)
    }
}

/// Writes figures into `folder` as SVG, and returns their paths.
///
/// # Errors
/// [`FigureError`] with the file that could not be written.
pub fn write_drawings(drawings: &[Drawing], folder: &Path) -> Result<Vec<PathBuf>, FigureError> {
    let figures = drawings.iter().map(|drawing| (drawing.name, drawing.plot.svg()));
    report::write_svgs(figures, folder)
}
