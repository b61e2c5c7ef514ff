//! Douglas 2011, "User Mode Memory Page Management": every experiment of the paper, on this machine.
//!
//! | experiment | in the paper | file |
//! | --- | --- | --- |
//! | `faults` | Figures 3 to 5, Table 1: the cost of a page, and of a block by its size | `faults.rs` |
//! | `mix` | Figure 6: malloc with the page layer on and off | `mix.rs` |
//! | `programs` | Table 2: whole programs | `programs/` |
//! | `claims` | the abstract: 8 MB allocated, 128 KB resized to 256 KB | `claims.rs` |
//! | `remap` | section 4.2: growing vectors, relocation, swap, batches | `remap.rs` |
//!
//! Each experiment takes a [`Bench`], defines the processes to compare, runs them, and returns a
//! [`Finding`]. [`Scale`](crate::Scale) chooses the amount of work: the paper's, two minutes, or a test's.

mod bench;
mod claims;
mod faults;
mod mix;
mod programs;
mod remap;
mod work;

pub use bench::{Bench, Places};
pub use work::work;

use crate::options::chosen;
use crate::{Common, Finding, Report, clock};
use clap::{Args, ValueEnum};
use serde_json::json;

/// The word that makes an executable a worker.
const WORKER: &str = "work";

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.douglas/1";

/// Run the experiments of Douglas 2011 ("User Mode Memory Page Management") on this machine.
///
/// Prints each published table or figure beside ours, and reports for each whether Vellum's goal is met. A
/// full run takes about half an hour, most of it for whole programs; nothing else should run during this
/// time.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// The options of all papers.
    #[command(flatten)]
    pub common: Common,

    /// Run only this experiment; can be given several times.
    #[arg(long, value_name = "EXPERIMENT")]
    pub only: Vec<Experiment>,
}

/// The experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Experiment {
    /// Figures 3 to 5, Table 1: the cost of a page, paged and not, and of a block by its size.
    Faults,
    /// Figure 6: malloc with the page layer on and off.
    Mix,
    /// Table 2: whole programs.
    Programs,
    /// The abstract: 8 MB allocated, 128 KB resized to 256 KB.
    Claims,
    /// Section 4.2: growing vectors, relocation, swap, batches.
    Remap,
}

/// Runs the experiments of the options, in the paper's order; `found` is called after each.
pub fn run(options: &Options, bench: &mut Bench<'_>, mut found: impl FnMut(&Finding)) -> Report {
    bench.prepare();
    let mut findings = Vec::new();
    for experiment in chosen(&options.only) {
        bench.begin(crate::options::name(experiment));
        let finding = match experiment {
            Experiment::Faults => faults::run(bench),
            Experiment::Mix => mix::run(bench),
            Experiment::Programs => programs::run(bench),
            Experiment::Claims => claims::run(bench),
            Experiment::Remap => remap::run(bench),
        };
        found(&finding);
        findings.push(finding);
    }
    let peers: Vec<_> = bench.peers().iter().map(|peer| (peer.name, &peer.version)).collect();
    let missing: Vec<_> = bench.missing().iter().map(|missing| (missing.name, &missing.cure)).collect();
    let own = json!({ "cycles_are": clock::UNIT, "peers": peers, "missing": missing });
    Report::new(SCHEMA, bench.scale, bench.seed, findings, own)
}
