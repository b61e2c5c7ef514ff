//! The part of a report that all papers have, written as JSON.

use crate::{Finding, Scale};
use serde::Serialize;
use serde_json::Value as Json;
use vellum_measure::Machine;
use vellum_timing::machine;

/// The findings of all experiments of a paper.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
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
    /// The fields of the JSON that only this paper's report has.
    #[serde(flatten)]
    pub own: Json,
}

impl Report {
    pub(crate) fn new(
        schema: &'static str,
        scale: Scale,
        seed: u64,
        experiments: Vec<Finding>,
        own: Json,
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
