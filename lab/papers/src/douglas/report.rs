//! The report on Douglas 2011: the allocators, and the unit of cycles.

use super::Bench;
use crate::{clock, report};
use serde::Serialize;

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.douglas/1";

/// The whole result.
pub type Report = report::Report<Own>;

/// The part that only this report has.
#[derive(Debug, Clone, Serialize)]
pub struct Own {
    /// The unit of figures named `cycles`: the time-stamp counter's cycles, or `ns` without such a counter.
    pub cycles_are: &'static str,
    /// The allocators found here, name and version.
    pub peers: Vec<(&'static str, String)>,
    /// The missing allocators, name and how to install them.
    pub missing: Vec<(&'static str, String)>,
}

impl Own {
    pub(super) fn of(bench: &Bench<'_>) -> Self {
        Self {
            cycles_are: clock::UNIT,
            peers: bench.peers().iter().map(|peer| (peer.name, peer.version.clone())).collect(),
            missing: bench.missing().iter().map(|missing| (missing.name, missing.cure.clone())).collect(),
        }
    }
}
