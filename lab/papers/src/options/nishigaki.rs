//! The command line of `vellum papers nishigaki`.

use super::{Common, asked};
use clap::{Args, ValueEnum};

/// Run the experiments of Nishigaki 1981 ("Experiments on the Knee Criterion in a Multiprogrammed Computer
/// System").
///
/// Prints each published table or figure beside ours, and reports for each whether Vellum's goal is met. The
/// machine of the paper is simulated from seeds: all results are the same everywhere. Takes about two
/// minutes.
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
    /// Figure 2: the curves of the synthetic programs.
    Curves,
    /// Table 1: estimated windows beside the optimal ones.
    Table1,
    /// Figures 4 and 5: six jobs under two memory sizes.
    Throughput,
}

impl Options {
    /// The chosen experiments, in the paper's order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Experiment> {
        asked(&self.only)
    }
}
