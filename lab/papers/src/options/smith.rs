//! The command line of `vellum papers smith`.

use super::Common;
use clap::{Args, ValueEnum};

/// Run the experiments of Smith and Morrisett 1998 ("Comparing Mostly-Copying and Mark-Sweep Conservative
/// Collection").
///
/// Eight programs in C are compiled here for libgc and for each plan of Vellum's collector, run by turns in
/// heaps of 1 to 64 MiB, and set beside what was published. A full run takes about half an hour; nothing else
/// should run meanwhile.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// What all sources have.
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
    /// Tables 2 and 5, Figure 3: what the clients allocate and keep.
    Basics,
    /// Table 7, Figure 1: client and collector time by heap size.
    Times,
    /// Table 6, Figure 2: a word more an object; and what types are worth.
    Headers,
    /// Tables 3 and 4, Figure 4: where a collection's time goes.
    Phases,
    /// Section 3.3: collecting where the stack is shallow.
    Shallow,
    /// Cache misses by simulation, in place of the counters the source wished for.
    Cache,
    /// Programs written for libgc, with Vellum's library in its place; the same as --libgc.
    Libgc,
}

impl Options {
    /// The experiments asked for, in this order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Experiment> {
        let asked = |experiment: &&Experiment| match experiment {
            Experiment::Libgc => self.libgc || self.only.contains(experiment),
            _ => self.only.is_empty() || self.only.contains(experiment),
        };
        Experiment::value_variants().iter().filter(asked).copied().collect()
    }
}
