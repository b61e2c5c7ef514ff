//! The command line of `vellum papers cooper`.

use super::{Common, Scale, asked};
use crate::workshop::Plan;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Run the experiments of Cooper, Nettles and Subramanian 1992 ("Improving the Performance of SML Garbage
/// Collection using Application-Specific Virtual Memory Management").
///
/// Runs three programs whose heaps outgrow their memory, under every strategy and pager mode of the paper and
/// with and without copy-back. They are paged by the kernel, in a memory cgroup over swap made for the
/// experiment (root), and by Vellum's own pager (any user). Each of the paper's figures is printed beside
/// ours. Parameters of the strategies are found by search; --quick takes the paper's. The default takes about
/// an hour.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// The options of all papers.
    #[command(flatten)]
    pub common: Common,

    /// Run only this experiment; can be given several times.
    #[arg(long, value_name = "EXPERIMENT")]
    pub only: Vec<Experiment>,

    /// Run only these of compiler, sort and primes; can be given several times.
    #[arg(long, value_name = "CLIENT", value_parser = ["compiler", "sort", "primes"])]
    pub client: Vec<String>,

    /// Simultaneous runs of the search (default: the number of processors).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: Option<u16>,

    /// Let the kernel page to a zram disk made for it, and compare CPU time, instead of a file in --store and
    /// elapsed time. For machines that run other programs.
    #[arg(long)]
    pub zram: bool,

    /// The folder of the kernel's swap file and the pager's store (default: /var/tmp).
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,

    /// The collector's plan. Only appel has regions that are vacated and may be copied back.
    #[arg(long, value_enum, default_value_t = Plan::Appel)]
    pub plan: Plan,

    /// The memory that replaces the paper's 11 MB, in MiB (default: 24; --quick: 5).
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub memory: Option<u32>,
}

/// The experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Experiment {
    /// Figures 1, 5 and 9: live size over allocation.
    Live,
    /// Figures 2 to 4, 6 to 8, 10 to 24, paged by the kernel (root).
    Kernel,
    /// The same, paged by Vellum.
    Pager,
    /// Sizing without tuning, compared with the optimum found by search.
    Knee,
}

impl Options {
    /// The chosen experiments, in this order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Experiment> {
        asked(&self.only)
    }

    /// The clients' memory, in MiB.
    #[must_use]
    pub fn memory_mib(&self, scale: Scale) -> u32 {
        self.memory.unwrap_or(scale.pick(24, 5, 4))
    }

    /// The folder of the store, or of the swap file.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.store.clone().unwrap_or_else(|| "/var/tmp".into())
    }
}
