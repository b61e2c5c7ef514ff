//! The whole result as JSON.

use super::Bench;
use crate::{Finding, clock, report};
use serde::Serialize;
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

impl Report {
    pub(super) fn new(bench: &Bench<'_>, experiments: Vec<Finding>) -> Self {
        Self {
            schema: SCHEMA,
            scale: bench.scale.name(),
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
        report::json(self)
    }
}
