//! The report on Nishigaki 1981, without additions: only the overhead depends on the machine.

use crate::report;
use serde::Serialize;

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.nishigaki/1";

/// The whole result.
pub type Report = report::Report<Own>;

/// The part that only this report has.
#[derive(Debug, Clone, Serialize)]
pub struct Own {}
