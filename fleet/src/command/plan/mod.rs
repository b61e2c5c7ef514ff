//! `vellum plan`: computes the memory that a fleet would need at a given slowdown.
//!
//! ```text
//! Prometheus ─▶ export ─▶ Parquet ─▶ Fleet ─▶ a size for each container ─┬─▶ report: memory, nodes, owners
//!                                             (for each slowdown)        └─▶ --json: the same as JSON
//! ```

mod export;
mod report;

use crate::Ended;
use clap::{Subcommand, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use vellum_fleet::plan::{Fleet, read};
use vellum_report::option::{percent, time};
use vellum_report::{amount, stdout};

/// Plan a fleet: the memory and nodes needed at 1, 2, 5 % slowdown, and the owners that lose CPU time.
///
/// Reads container-hours (Parquet) written by `vellum plan export`. For each slowdown, finds the least memory
/// with which all containers together lose at most that part of their CPU time to page faults. Containers
/// that lose little give up more. For comparison, the report shows the memory if each container alone keeps
/// to the slowdown. Files are read in pieces; other engines (DuckDB, Polars, Spark) can read them, too.
///
/// Exit status: 0; 125 if a file cannot be used, or has no container-hour.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  vellum plan export --output curves.parquet\n  vellum plan curves.parquet\n  \
    vellum plan --slowdown 2% --node 64GiB --delay 80us monday.parquet tuesday.parquet"
)]
pub(crate) struct Plan {
    #[command(subcommand)]
    what: Option<What>,

    /// Files written by `vellum plan export`.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// The slowdowns to plan for.
    #[arg(long, value_name = "PERCENT", value_parser = percent, value_delimiter = ',', default_value = "1%,2%,5%")]
    slowdown: Vec<f64>,

    /// The delay of a page fault, for the device to which containers would swap.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "100us")]
    delay: Duration,

    /// The memory of a node that is available to containers.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64GiB")]
    node: u64,

    /// The maximum number of owners shown.
    #[arg(long, value_name = "COUNT", default_value = "10")]
    top: usize,

    /// Write JSON (schema vellum.plan/1) with all owners.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    Export(export::Export),
}

fn size(text: &str) -> Result<u64, String> {
    amount::size(text).filter(|bytes| *bytes > 0).ok_or_else(|| "write a size, such as 64GiB".to_owned())
}

pub(crate) fn plan(args: &Plan) -> Ended {
    if let Some(What::Export(export)) = &args.what {
        return export::export(export);
    }
    let mut fleet = Fleet::new(args.delay.as_secs_f64());
    for file in &args.files {
        read(file, |row| fleet.add(row))?;
    }
    if fleet.containers.is_empty() {
        let out = fleet.seen.left_out;
        let why = format!("no row has a curve that makes sense ({out} were left out)");
        return Err(format!("{why}; export more hours (vellum plan export)").into());
    }
    let report = report::report(&fleet, &args.slowdown, args.delay, args.node);
    let text = if args.json { vellum_report::json(&report)? } else { report.text(args.top) };
    stdout::write_all(text.as_bytes())?;
    Ok(0)
}
