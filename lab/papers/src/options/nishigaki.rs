//! The command line of `vellum papers nishigaki`.

use super::Common;
use clap::{Args, ValueEnum};

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
    /// The chosen experiments, in the paper's order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Experiment> {
        let asked = |experiment: &&Experiment| match experiment {
            Experiment::Real => self.real || self.only.contains(experiment),
            _ => self.only.is_empty() || self.only.contains(experiment),
        };
        Experiment::value_variants().iter().filter(asked).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_experiment_runs_only_if_chosen() {
        let chosen = |real, only: &[Experiment]| {
            Options { real, only: only.to_vec(), ..Options::default() }.experiments()
        };
        let all = Experiment::value_variants();
        assert_eq!((chosen(false, &[]), chosen(true, &[])), (all[..3].to_vec(), all.to_vec()));
        assert_eq!(chosen(false, &[Experiment::Real]), [Experiment::Real]);
    }
}
