//! Nishigaki 1981, "Experiments on the Knee Criterion in a Multiprogrammed Computer System": every
//! experiment of the report.
//!
//! The paper defines how much memory a program should have, and estimates this amount while the program
//! runs. It shows how much more work a machine does if it gives each job that amount.
//!
//! | experiment | in the paper | file |
//! | --- | --- | --- |
//! | `curves` | Figure 2: working sets and costs (X, Y) of the synthetic programs | `curves.rs` |
//! | `table1` | Table 1: estimated windows beside the optimal ones | `table1.rs` |
//! | `throughput` | Figures 4 and 5, equation 2.7: six jobs in two memory sizes | `throughput.rs` |
//! | `real` (with `--real`) | these jobs as real processes, against the kernel's reclaim | `real/` |
//!
//! ```text
//!  crate::model: programs, estimators, simulated machine ─▶ experiment ─▶ Finding ─▶ text, JSON, SVG
//!                                          random seeds ────────┘
//! ```
//!
//! Only `real` measures this machine. The other results are computed from seeds and are the same everywhere.
//! The paper's machine is simulated; `crate::model::sim` lists the assumptions.

mod curves;
mod machine;
mod real;
mod table1;
mod throughput;

pub use real::{JOB, job};

use crate::{Common, Finding, Progress, Report, Scale};
use clap::{Args, ValueEnum};
use serde_json::json;

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.nishigaki/1";

/// The size of the experiments, and the callback for their progress.
struct Run<'a> {
    scale: Scale,
    /// The first seed.
    seed: u64,
    experiment: &'a str,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl Run<'_> {
    fn seeds(&self) -> Vec<u64> {
        (self.seed..).take(self.scale.pick(SEEDS, SEEDS_QUICK, 1)).collect()
    }

    fn tell(&mut self, done: usize, total: usize, what: &str) {
        (self.progress)(Progress { experiment: self.experiment, done, total, what });
    }
}

const SEEDS: usize = 13;
const SEEDS_QUICK: usize = 3;

/// Run the experiments of Nishigaki 1981 ("Experiments on the Knee Criterion in a Multiprogrammed Computer
/// System").
///
/// Prints each published table or figure beside ours, and reports for each whether Vellum's goal is met. The
/// machine of the paper is simulated from seeds: its results are the same everywhere. Takes about two
/// minutes.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// The options of all papers.
    #[command(flatten)]
    pub common: Common,

    /// Also run the throughput experiment as real processes, against the kernel's own reclaim: needs root;
    /// makes (and removes) a zram disk to swap to and a memory cgroup; takes some minutes.
    #[arg(long)]
    pub real: bool,

    /// Run only this experiment; can be given several times.
    #[arg(long, value_name = "EXPERIMENT")]
    pub only: Vec<Experiment>,
}

/// The experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Experiment {
    /// Figure 2: the curves of the synthetic programs.
    Curves,
    /// Table 1: estimated windows beside the optimal ones.
    Table1,
    /// Figures 4 and 5: six jobs under two memory sizes.
    Throughput,
    /// Real processes against the kernel's own reclaim; the same as --real.
    Real,
}

impl Options {
    /// The chosen experiments, in the paper's order. Real processes run only if named.
    fn experiments(&self) -> Vec<Experiment> {
        let is_chosen = |experiment: &&Experiment| match experiment {
            Experiment::Real => self.real || self.only.contains(experiment),
            _ => self.only.is_empty() || self.only.contains(experiment),
        };
        Experiment::value_variants().iter().filter(is_chosen).copied().collect()
    }
}

/// Runs the experiments of the options, in the paper's order; `found` is called after each.
pub fn run(
    options: &Options,
    scale: Scale,
    progress: &mut dyn FnMut(Progress<'_>),
    mut found: impl FnMut(&Finding),
) -> Report {
    let seed = options.common.seed();
    let mut findings = Vec::new();
    for experiment in options.experiments() {
        let mut run =
            Run { scale, seed, experiment: &crate::options::name(experiment), progress: &mut *progress };
        let finding = match experiment {
            Experiment::Curves => curves::run(&mut run),
            Experiment::Table1 => table1::run(&mut run),
            Experiment::Throughput => throughput::run(&mut run),
            Experiment::Real => real::run(&mut run),
        };
        found(&finding);
        findings.push(finding);
    }
    Report::new(SCHEMA, scale, seed, findings, json!({}))
}
