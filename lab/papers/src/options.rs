//! The options of all papers. A paper's module has its own: its experiments and their settings.

use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

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
    pub(crate) fn name(self) -> &'static str {
        self.pick("full", "quick", "tiny")
    }
}

/// The chosen experiments, in the order of their declaration, which is the paper's; all, if none was chosen.
pub(crate) fn chosen<E: ValueEnum + PartialEq + Copy>(only: &[E]) -> Vec<E> {
    let asked = |experiment: &&E| only.is_empty() || only.contains(experiment);
    E::value_variants().iter().filter(asked).copied().collect()
}

/// An experiment's name on the command line.
pub(crate) fn name(experiment: impl ValueEnum) -> String {
    // No experiment is hidden from the command line.
    experiment.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_run_in_the_papers_order() {
        use crate::douglas::Experiment::{self, Faults, Remap};
        assert_eq!(chosen::<Experiment>(&[]).len(), 5);
        assert_eq!(chosen(&[Remap, Faults]), [Faults, Remap]);
    }
}
