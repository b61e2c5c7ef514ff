//! The command line of `vellum papers smith`.

use super::Common;
use clap::{Args, ValueEnum};

/// Run the experiments of Smith and Morrisett 1998 ("Comparing Mostly-Copying and Mark-Sweep Conservative
/// Collection").
///
/// Compiles eight programs in C for libgc and for each plan of Vellum's collector. Runs them by turns in
/// heaps of 1 to 64 MiB, and prints the published results beside ours. A full run takes about half an hour;
/// nothing else should run during this time.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// The options of all papers.
    #[command(flatten)]
    pub common: Common,

    /// Also run the programs as they are compiled for libgc with Vellum's libgc.so.1 in its place.
    #[arg(long)]
    pub libgc: bool,

    /// Run only this experiment; can be given several times.
    #[arg(long, value_name = "EXPERIMENT")]
    pub only: Vec<Experiment>,
}

/// The experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Experiment {
    /// Tables 2 and 5, Figure 3: the clients' allocations and live data.
    Basics,
    /// Table 7, Figure 1: client and collector time by heap size.
    Times,
    /// Table 6, Figure 2: one more word in each object, and the value of types.
    Headers,
    /// Tables 3 and 4, Figure 4: the time of each phase of a collection.
    Phases,
    /// Programs written for libgc, with Vellum's library in its place; the same as --libgc.
    Libgc,
}

impl Options {
    /// The chosen experiments, in this order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Experiment> {
        let asked = |experiment: &&Experiment| match experiment {
            Experiment::Libgc => self.libgc || self.only.contains(experiment),
            _ => self.only.is_empty() || self.only.contains(experiment),
        };
        Experiment::value_variants().iter().filter(asked).copied().collect()
    }
}
