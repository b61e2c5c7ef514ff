//! Bates 1999, "Reliable Benchmarking with Limbo on Inferno": the experiments of the paper, on this machine.
//!
//! The paper's question is how to time something reliably. It measures the simplest case, called BASE: the
//! time between two stamps (readings of a clock) with nothing between them, a thousand times. The result
//! depends on how a stamp is made.
//!
//! | experiment | in the paper | file |
//! | --- | --- | --- |
//! | `slow` | Figures 1 to 4: a stamp by a system call and a conversion from text | `slow.rs` |
//! | `builtin` | Figures 10 to 12: a stamp of a few instructions | `builtin.rs` |
//! | `collector` | Figures 5 to 9, and 12: stamps beside a garbage collector | `collector.rs` |
//!
//! ```text
//!   options ─▶ bases.rs: measures each kind of stamp, N rounds, in random order ─▶ Bases
//!                                                                                    │
//!                      Finding, drawings ◀── slow · builtin ◀────────────────────────┘
//!                            │
//!                            └──▶ text, JSON, SVG, lines of observations
//! ```
//!
//! `bases.rs` measures all kinds of stamp by turns, so that no kind gets a quieter minute than others;
//! `slow` and `builtin` report the results. Unlike the other papers' experiments, these run in this process:
//! its state does not matter, and starting a process would disturb more. `collector` makes its own
//! measurements and runs last, since the others need a process without a collector.

mod bases;
mod builtin;
mod collector;
mod slow;
mod stamp;

pub use bases::BasesError;

use crate::options::chosen;
use crate::{Common, Finding, Progress, Report, Scale};
use bases::Bases;
use clap::{Args, ValueEnum, ValueHint};
use serde_json::json;
use std::path::PathBuf;
use vellum_measure::Series;
use vellum_report::plot::{Plot, PlotError};

/// Name and version of the JSON.
pub const SCHEMA: &str = "vellum.papers.bates/1";

/// Run the experiments of Bates 1999 ("Reliable Benchmarking with Limbo on Inferno") on this machine.
///
/// Measures a thousand empty timings under each kind of stamp, prints the paper's figures beside ours, and
/// reports for each experiment whether Vellum's goal is met. Takes a few seconds.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// The options of all papers.
    #[command(flatten)]
    pub common: Common,

    /// Also write every observation as lines, for vellum plot and vellum obs; "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,

    /// Report only this experiment; can be given several times.
    #[arg(long, value_name = "EXPERIMENT")]
    pub only: Vec<Experiment>,
}

/// The experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Experiment {
    /// Figures 1 to 4: a stamp that is a system call and a conversion from text.
    Slow,
    /// Figures 10 to 12: a stamp of a few instructions.
    Builtin,
    /// Figures 5 to 9, and 12: a collector's slices, idle collection, yielding, held off.
    Collector,
}

/// Runs the experiments of the options, in the paper's order; `found` is called after each. Also returns
/// every BASE, one for each round, which the JSON has in schema `vellum.observations/1`. Labels: the kind of
/// stamp, the round.
///
/// # Errors
/// If no clock can be read.
pub fn run(
    options: &Options,
    scale: Scale,
    progress: &mut dyn FnMut(Progress<'_>),
    mut found: impl FnMut(&Finding),
) -> Result<(Report, Vec<Series>), BasesError> {
    let seed = options.common.seed();
    let bases = Bases::measure(scale, seed, progress)?;
    let mut findings = Vec::new();
    for experiment in chosen(&options.only) {
        let one = match experiment {
            Experiment::Slow => slow::run(&bases, scale, progress),
            Experiment::Builtin => builtin::run(&bases),
            Experiment::Collector => collector::run(&bases, scale, progress),
        };
        found(&one);
        findings.push(one);
    }
    let series = bases.into_series();
    let report = Report::new(SCHEMA, scale, seed, findings, json!({ "series": series }));
    Ok((report, series))
}

/// Drawings that could be made, with the names of their files.
fn drawn<const N: usize>(plots: [(&'static str, Result<Plot, PlotError>); N]) -> Vec<(&'static str, Plot)> {
    plots.into_iter().filter_map(|(name, plot)| Some((name, plot.ok()?))).collect()
}
