//! The command line of `vellum papers douglas`.

use super::{Common, asked};
use clap::{Args, ValueEnum};

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

impl Options {
    /// The chosen experiments, in the paper's order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Experiment> {
        asked(&self.only)
    }
}
