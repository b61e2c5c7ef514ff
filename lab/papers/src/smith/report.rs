//! The report on Smith 1998: the collectors of this machine.

use super::lab::Lab;
use crate::report;
use serde::Serialize;

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.smith/1";

/// The whole result.
pub type Report = report::Report<Own>;

/// The part that only this report has.
#[derive(Debug, Clone, Serialize)]
pub struct Own {
    /// The collectors found here.
    pub collectors: Vec<&'static str>,
    /// The missing collectors, name and how to install them.
    pub missing: Vec<(&'static str, String)>,
}

impl Own {
    pub(super) fn of(lab: &Lab<'_>) -> Self {
        Self {
            collectors: lab.here.iter().map(|collector| collector.name()).collect(),
            missing: lab.missing.iter().map(|missing| (missing.name, missing.cure.clone())).collect(),
        }
    }
}
