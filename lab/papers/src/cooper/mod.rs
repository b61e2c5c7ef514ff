//! Cooper, Nettles and Subramanian 1992, "Improving the Performance of SML Garbage Collection using
//! Application-Specific Virtual Memory Management": its experiments, on this machine.
//!
//! In the paper, garbage-collected programs fit their heaps to the memory, and notify a pager of pages whose
//! contents need not be saved. Three programs show the gain when memory is short. Here they are three of
//! `clients/`, collected by Vellum's generational collector `appel`, and paged by the kernel or by Vellum.
//!
//! | experiment | in the paper | file |
//! | --- | --- | --- |
//! | `live` | Figures 1, 5 and 9 | `live.rs` |
//! | `kernel`, `pager` | Figures 2 to 4, 6 to 8, 10 to 12, and the appendix, 13 to 24 | `results.rs` |
//! | `knee` | sections 5 and 7: parameters without tuning | `knee.rs` |
//!
//! ```text
//!   clients/*.c ─▶ Workshop ─▶ Setting (heap sizing × pager mode × use of vacated regions)
//!    (compiles them)                ▲  │
//!                                   │  └─▶ Ready (a run, its memory limited) ─▶ sheets of runs ─▶ Finding
//!                                   │
//!                    search ────────┘  all points of a grid, several at a time
//! ```
//!
//! Differences in all experiments:
//! - The paper's machine took some 25 ms to page in from its disk and executed some 14 MIPS, so a page cost
//!   350,000 instructions. Today's devices are much faster relative to processors, so paging costs less.
//! - The memory's size is an option, and the clients fit their live data to it.
//! - Experiments that this machine does not allow (no root, a library without the plan) are listed and
//!   skipped.

mod client;
mod knee;
mod lab;
mod live;
mod place;
mod published;
mod results;
mod search;
mod setting;

pub use crate::workshop::Plan;

use crate::options::chosen;
use crate::workshop::{Workshop, WorkshopError};
use crate::{Common, Finding, Progress, Report, Scale};
use clap::{Args, ValueEnum, ValueHint};
use lab::Lab;
use place::{Place, asked};
use serde_json::json;
use std::path::{Path, PathBuf};
use vellum_process::Interrupt;

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.cooper/1";

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

/// Runs the experiments of the options, in the paper's order; `found` is called after each. `library` is
/// Vellum's. A signal to end stops the current run; changes to the machine are undone.
///
/// # Errors
/// If the clients' sources cannot be written into the temporary folder. An experiment that this machine does
/// not allow is no error: the report lists it.
pub fn run(
    options: &Options,
    scale: Scale,
    library: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
    mut found: impl FnMut(&Finding),
) -> Result<Report, WorkshopError> {
    // If signals cannot be caught, they end this process as usual.
    let _caught = Interrupt::catch();
    let workshop = Workshop::new(library)?;
    let mut lab = Lab::new(options, scale, workshop, progress);
    let mut findings = Vec::new();
    for experiment in chosen(&options.only) {
        if asked() {
            break;
        }
        lab.experiment = crate::options::name(experiment);
        let finding = match experiment {
            Experiment::Live => live::run(&mut lab),
            Experiment::Kernel => results::run(&mut lab, Place::Kernel),
            Experiment::Pager => results::run(&mut lab, Place::Pager),
            Experiment::Knee => knee::run(&mut lab),
        };
        found(&finding);
        findings.push(finding);
    }
    let own = json!({
        "memory_mib": lab.size.memory_mib,
        "device": if lab.options.zram { "zram" } else { "file" },
        "missing": lab.missing(),
    });
    Ok(Report::new(SCHEMA, lab.scale, lab.seed, findings, own))
}
