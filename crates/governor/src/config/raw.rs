//! The job table as parsed from TOML, not yet checked. Each value has its position in the text, for errors.

use super::Restart;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    #[serde(default)]
    pub(super) governor: Governor,
    #[serde(default, rename = "job")]
    pub(super) jobs: Vec<Spanned<Job>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Governor {
    pub(super) budget: Option<Spanned<String>>,
    pub(super) period: Option<Spanned<String>>,
    pub(super) brake: Option<Spanned<String>>,
    pub(super) turn: Option<Spanned<String>>,
    pub(super) longest_suspension: Option<Spanned<String>>,
    pub(super) sockets: Option<Spanned<String>>,
    pub(super) metrics: Option<Spanned<String>>,
    pub(super) groups: Option<Spanned<String>>,
    pub(super) delta: Option<Spanned<String>>,
    pub(super) alpha: Option<Spanned<f64>>,
    pub(super) criterion: Option<Spanned<String>>,
    pub(super) cap: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Job {
    pub(super) name: Spanned<String>,
    pub(super) command: Option<Spanned<Vec<String>>>,
    pub(super) pid: Option<Spanned<i64>>,
    pub(super) cgroup: Option<Spanned<String>>,
    pub(super) user: Option<Spanned<String>>,
    pub(super) directory: Option<Spanned<String>>,
    pub(super) environment: Option<Spanned<BTreeMap<String, String>>>,
    pub(super) output: Option<Spanned<String>>,
    pub(super) restart: Option<Spanned<Restart>>,
    pub(super) runtime: Option<Spanned<bool>>,
    pub(super) priority: Option<Spanned<i64>>,
    pub(super) delta: Option<Spanned<String>>,
    pub(super) alpha: Option<Spanned<f64>>,
    pub(super) criterion: Option<Spanned<String>>,
    pub(super) cap: Option<Spanned<String>>,
}
