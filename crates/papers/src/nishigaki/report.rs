//! The whole result, as JSON.

use crate::{Finding, Scale, report};
use serde::Serialize;
use vellum_measure::Machine;
use vellum_probe::machine;

/// Name and version of the JSON. A field's meaning never changes; new ones may come.
pub const SCHEMA: &str = "vellum.papers.nishigaki/1";

/// All that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `full`, `quick` or `tiny`.
    pub scale: &'static str,
    /// The first seed.
    pub seed: u64,
    /// What it was computed on; only the overhead depends on it.
    pub machine: Machine,
    /// One an experiment.
    pub experiments: Vec<Finding>,
}

impl Report {
    pub(super) fn new(scale: Scale, seed: u64, experiments: Vec<Finding>) -> Self {
        Self { schema: SCHEMA, scale: scale.name(), seed, machine: machine::read(), experiments }
    }

    /// The report as JSON, ending in a newline.
    #[must_use]
    pub fn json(&self) -> String {
        report::json(self)
    }
}
