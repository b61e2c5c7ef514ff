//! Cooper, Nettles and Subramanian 1992, "Improving the Performance of SML Garbage Collection using
//! Application-Specific Virtual Memory Management": its experiments, on this machine.
//!
//! The paper fits the heaps of collected programs to the memory. It also notifies its own pager of pages
//! whose contents need not be saved. Three programs show the gain when memory is short. Here they are three
//! of `clients/`, collected by Vellum's plan `appel`, and paged by the kernel or by Vellum.
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
//! - Experiments that this machine does not allow (no root, a library without a mode) are listed and
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

pub use crate::options::cooper::{Experiment, Options};
pub use crate::workshop::Plan;

use crate::workshop::{Workshop, WorkshopError};
use crate::{Finding, Progress, Report, Scale};
use lab::Lab;
use place::{Place, asked};
use serde_json::json;
use std::path::Path;
use vellum_process::Interrupt;

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.cooper/1";

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
    let mut lab = Lab::new(options, scale, library, workshop, progress);
    let mut findings = Vec::new();
    for experiment in options.experiments() {
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
