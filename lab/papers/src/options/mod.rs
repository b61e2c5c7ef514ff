//! The command line of `vellum papers`: `vellum` passes its arguments to `vellum-papers`, which parses them.
//!
//! A paper's own options are its experiments and their extra settings; other options are common to all
//! papers.

pub mod bates;
pub mod cooper;
pub mod douglas;
pub mod nishigaki;
pub mod smith;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

/// The paper whose experiments are run.
#[derive(Debug, Subcommand)]
#[allow(missing_docs, reason = "the help of each is that of its options")]
pub enum Papers {
    Douglas(douglas::Options),
    Bates(bates::Options),
    Smith(smith::Options),
    Nishigaki(nishigaki::Options),
    Cooper(cooper::Options),
    /// Do one part of an experiment's work, and print its figures as a line of JSON.
    #[command(hide = true)]
    Work {
        /// The name of the work.
        name: String,
        /// Its parameters, name=value.
        words: Vec<String>,
    },
}

/// The options of all papers.
#[derive(Debug, Clone, Default, Args)]
pub struct Common {
    /// Smaller inputs and fewer repetitions: takes a fraction of the time given above.
    #[arg(long)]
    pub quick: bool,

    /// Also write the whole report as JSON, with the name of its schema; "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Draw the figures into this directory as SVG files; the directory is made if it does not exist.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,

    /// The seed of all random choices (default: 1); of several seeds, the first.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl Common {
    /// The size of the experiments.
    #[must_use]
    pub fn scale(&self) -> Scale {
        if self.quick { Scale::Quick } else { Scale::Full }
    }

    /// The given seed, or the default.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }
}

/// The size of the experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// The sizes of the paper and beyond, with enough repetitions for narrow intervals.
    Full,
    /// Fewer and smaller runs, for a first result.
    Quick,
    /// As small as possible, for tests.
    Tiny,
}

impl Scale {
    /// One of three values.
    pub fn pick<T>(self, full: T, quick: T, tiny: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            Self::Tiny => tiny,
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        self.pick("full", "quick", "tiny")
    }
}

/// The chosen experiments, in the order of their declaration, which is the paper's; all, if none was chosen.
pub fn asked<E: ValueEnum + PartialEq + Copy>(only: &[E]) -> Vec<E> {
    let asked = |experiment: &&E| only.is_empty() || only.contains(experiment);
    E::value_variants().iter().filter(asked).copied().collect()
}

/// An experiment's name on the command line.
pub fn name(experiment: impl ValueEnum) -> String {
    // No experiment is hidden from the command line.
    experiment.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_run_in_the_papers_order() {
        use douglas::Experiment::{Faults, Remap};
        assert_eq!(asked::<douglas::Experiment>(&[]).len(), 5);
        assert_eq!(asked(&[Remap, Faults]), [Faults, Remap]);
    }
}
