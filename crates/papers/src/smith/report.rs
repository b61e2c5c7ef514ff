//! The whole result as JSON.

use super::lab::Lab;
use crate::{Finding, report};
use serde::Serialize;
use vellum_probe::campaign::Machine;

/// Name and version of the JSON. A field's meaning never changes; new ones may come.
pub const SCHEMA: &str = "vellum.papers.smith/1";

/// All that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `full`, `quick` or `tiny`.
    pub scale: &'static str,
    /// The seed of all random orders.
    pub seed: u64,
    /// What was measured on.
    pub machine: Machine,
    /// The collectors here.
    pub collectors: Vec<&'static str>,
    /// The collectors not here, name and how to get it.
    pub missing: Vec<(&'static str, String)>,
    /// One an experiment.
    pub experiments: Vec<Finding>,
}

impl Report {
    pub(super) fn new(lab: &Lab<'_>, experiments: Vec<Finding>) -> Self {
        Self {
            schema: SCHEMA,
            scale: lab.scale.name(),
            seed: lab.seed,
            machine: Machine::here(),
            collectors: lab.here.iter().map(|collector| collector.name()).collect(),
            missing: lab.missing.iter().map(|missing| (missing.name, missing.cure.clone())).collect(),
            experiments,
        }
    }

    /// The report as JSON, ending in a newline.
    #[must_use]
    pub fn json(&self) -> String {
        report::json(self)
    }
}
