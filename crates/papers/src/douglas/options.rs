//! What can be asked of `vellum papers douglas`.

use super::Scale;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Run the experiments of Douglas 2011 ("User Mode Memory Page Management") on this machine.
///
/// Prints each published table or figure beside what is measured here, and closes each with whether Vellum's goal for it
/// is met. A full run takes about half an hour, most of it for whole programs; nothing else should run meanwhile.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// Smaller inputs and fewer repetitions: ends within about two minutes.
    #[arg(long)]
    pub quick: bool,

    /// Also write everything as JSON (schema vellum.papers.douglas/1); "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Draw the figures into this directory as SVG files; it is made if it is not there.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,

    /// The seed of all random orders and mixes (default: 1).
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Run only this experiment; can be given several times.
    #[arg(long, value_name = "EXPERIMENT")]
    pub only: Vec<Experiment>,
}

/// The experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Experiment {
    /// Figures 3 and 4, Table 1: what a page costs, paged and not.
    Faults,
    /// Figure 5: allocation against block size.
    Scaling,
    /// Figure 6: malloc with the page layer on and off.
    Mix,
    /// Table 2: whole programs.
    Programs,
    /// The abstract: 8 MB allocated, 128 KB resized to 256 KB.
    Claims,
    /// Section 4.2: growing vectors, relocation, swap, batches.
    Remap,
}

impl Experiment {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Faults => "faults",
            Self::Scaling => "scaling",
            Self::Mix => "mix",
            Self::Programs => "programs",
            Self::Claims => "claims",
            Self::Remap => "remap",
        }
    }
}

impl Options {
    /// The experiments asked for, in the source's order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Experiment> {
        let asked = |experiment: &&Experiment| self.only.is_empty() || self.only.contains(experiment);
        Experiment::value_variants().iter().filter(asked).copied().collect()
    }

    /// How large the experiments are.
    #[must_use]
    pub fn scale(&self) -> Scale {
        if self.quick { Scale::Quick } else { Scale::Full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line_and_order_is_the_sources() {
        for experiment in Experiment::value_variants() {
            assert_eq!(experiment.to_possible_value().unwrap().get_name(), experiment.name());
        }
        assert_eq!(Options::default().experiments().len(), 6);
        let some = Options { only: vec![Experiment::Remap, Experiment::Faults], ..Options::default() };
        assert_eq!(some.experiments(), [Experiment::Faults, Experiment::Remap]);
    }
}
