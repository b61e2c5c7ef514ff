//! The command line of `vellum papers bates`.

use super::{Common, asked};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Run the experiments of Bates 1999 ("Reliable Benchmarking with Limbo on Inferno") on this machine.
///
/// A thousand empty timings under each kind of stamp, the source's figures beside what is measured here, and
/// for each experiment whether Vellum's goal for it is met. Takes a few seconds.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// What all sources have.
    #[command(flatten)]
    pub common: Common,

    /// Also write every observation as lines, for vellum plot and vellum obs; "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,

    /// Tell only of this experiment; can be given several times.
    #[arg(long, value_name = "EXPERIMENT")]
    pub only: Vec<Experiment>,
}

/// The experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Experiment {
    /// Figures 1 to 4: a stamp that is a system call and a text to be converted.
    Slow,
    /// Figures 10 to 12: a stamp of a few instructions.
    Builtin,
    /// BASE again, under each clock that can be trusted here.
    Clocks,
    /// Figures 5 to 9, and 12: a collector's slices, its idle time, giving way, held off.
    Collector,
}

impl Options {
    /// The experiments asked for, in the source's order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Experiment> {
        asked(&self.only)
    }
}
