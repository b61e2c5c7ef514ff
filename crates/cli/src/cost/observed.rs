//! The observations of one run of `vellum cost`, from which the text, the totals and the JSON are made.

use crate::outcome::Outcome;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use vellum_cost::Profile;
use vellum_process::Ended;

/// The observations of one run.
#[derive(Debug)]
pub(crate) struct Observed {
    /// The command as it was given.
    pub(crate) command: Vec<String>,
    /// The file.
    pub(crate) program: PathBuf,
    /// Its end and what the kernel accounted.
    pub(crate) ended: Ended,
    /// What its operations cost.
    pub(crate) profile: Profile,
    /// Whether the program allocated from Vellum.
    pub(crate) on_vellum: bool,
    /// Source files that were changed after a module was made of them, and that module.
    pub(crate) newer: BTreeMap<Arc<str>, PathBuf>,
    /// Things to know about the report, in words.
    pub(crate) notes: Vec<String>,
}

impl Observed {
    /// How the program ended.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome::of(self.ended.outcome)
    }
}
