//! Smith and Morrisett 1998, "Comparing Mostly-Copying and Mark-Sweep Conservative Collection": its
//! experiments, on this machine.
//!
//! The paper compares its new collector, MCC, with the common collector, BDW, by eight programs. Here the
//! programs are the eight of `clients/`. They run under libgc, which is BDW as Debian has it today, and
//! under each plan (algorithm) of Vellum's collector.
//!
//! | experiment | in the paper | file |
//! | --- | --- | --- |
//! | `basics` | Tables 2 and 5, Figure 3: allocations and live data | `basics.rs` |
//! | `times` | Table 7, Figure 1: client and collector time by heap size | `times.rs` |
//! | `headers` | Table 6, Figure 2: one more word in each object; objects without types | `headers.rs` |
//! | `phases` | Tables 3 and 4, Figure 4: the time of each phase, the roots | `phases.rs` |
//! | `libgc` | only with `--libgc`: Vellum's library in place of libgc's | `drop_in.rs` |
//!
//! ```text
//!   clients/*.c ─▶ Workshop: cc, for each heap ─▶ Launch ─▶ cells ─▶ Campaign ─▶ sheets ─▶ Finding
//! ```
//!
//! Two differences from the paper concern all experiments. A word was four bytes and is eight, so the same
//! objects take twice the memory. Time is CPU time; the collector's part is the time spent outside the
//! inlined fast path of an allocation.

mod basics;
mod client;
mod drop_in;
mod headers;
mod lab;
mod phases;
mod published;
mod times;

pub use crate::workshop::{Build, Collector, Plan, Workshop, WorkshopError};
pub use client::{CLIENTS, Client};

use crate::{Common, Finding, Progress, Report, Scale};
use clap::{Args, ValueEnum};
use lab::Lab;
use serde_json::json;
use std::path::PathBuf;
use vellum_process::Interrupt;

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.smith/1";

/// The paths of Vellum's libraries.
#[derive(Debug, Clone)]
pub struct Libraries {
    /// `libvellum.so`, with which clients are linked; it may be missing.
    pub vellum: PathBuf,
    /// The folder with the `libgc.so.1` that replaces libgc's; or the reason why it is missing, with the
    /// remedy.
    pub libgc: Result<PathBuf, String>,
}

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

/// Runs the experiments of the options, in this order; `found` is called after each. After a signal to end,
/// the results so far are reported.
///
/// # Errors
/// If the clients' sources cannot be written into the temporary folder. A missing collector is no error: the
/// report lists it.
pub fn run(
    options: &Options,
    scale: Scale,
    libraries: &Libraries,
    progress: &mut dyn FnMut(Progress<'_>),
    mut found: impl FnMut(&Finding),
) -> Result<Report, WorkshopError> {
    // If signals cannot be caught, they end this process as usual.
    let _caught = Interrupt::catch();
    let workshop = Workshop::new(&libraries.vellum)?;
    let mut lab = Lab::new(scale, options.common.seed(), workshop, libraries.libgc.clone(), progress);
    let mut findings = Vec::new();
    for experiment in options.experiments() {
        if Interrupt::arrived().is_some() {
            break;
        }
        lab.experiment = crate::options::name(experiment);
        let finding = match experiment {
            Experiment::Basics => basics::run(&mut lab),
            Experiment::Times => times::run(&mut lab),
            Experiment::Headers => headers::run(&mut lab),
            Experiment::Phases => phases::run(&mut lab),
            Experiment::Libgc => drop_in::run(&mut lab),
        };
        found(&finding);
        findings.push(finding);
    }
    let missing: Vec<_> = lab.missing.iter().map(|missing| (missing.name, &missing.cure)).collect();
    let collectors: Vec<_> = lab.here.iter().map(|collector| collector.name()).collect();
    let own = json!({ "collectors": collectors, "missing": missing });
    Ok(Report::new(SCHEMA, lab.scale, lab.seed, findings, own))
}
