//! The command line of `vellum papers bates`.

use super::{Common, asked};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Run the experiments of Bates 1999 ("Reliable Benchmarking with Limbo on Inferno") on this machine.
///
/// Measures a thousand empty timings under each kind of stamp, prints the paper's figures beside ours, and
/// reports for each experiment whether Vellum's goal is met. Takes a few seconds.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// The options of all papers.
    #[command(flatten)]
    pub common: Common,

    /// Also write every observation as lines, for vellum plot and vellum obs; "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,

    /// Report only this experiment; can be given several times.
    #[arg(long, value_name = "EXPERIMENT")]
    pub only: Vec<Experiment>,
}

/// The experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Experiment {
    /// Figures 1 to 4: a stamp that is a system call and a conversion from text.
    Slow,
    /// Figures 10 to 12: a stamp of a few instructions.
    Builtin,
    /// Figures 5 to 9, and 12: a collector's slices, idle collection, yielding, held off.
    Collector,
}

impl Options {
    /// The chosen experiments, in the paper's order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Experiment> {
        asked(&self.only)
    }
}
