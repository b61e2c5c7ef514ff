//! The report on Cooper et al. 1992: the memory, the paging device, and the capabilities this library lacks.

use super::lab::Lab;
use crate::report;
use serde::Serialize;

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.cooper/1";

/// The whole result.
pub type Report = report::Report<Own>;

/// The part that only this report has.
#[derive(Debug, Clone, Serialize)]
pub struct Own {
    /// The counterpart of the paper's 11 MB.
    pub memory_mib: u32,
    /// `file` or `zram`.
    pub device: &'static str,
    /// Combinations left out of the tables, with the reasons.
    pub missing: Vec<String>,
}

impl Own {
    pub(super) fn of(lab: &Lab<'_>) -> Self {
        Self {
            memory_mib: lab.size.memory_mib,
            device: if lab.options.zram { "zram" } else { "file" },
            missing: lab.missing(),
        }
    }
}
