//! `vellum plan export`: writes the working-set curves of Prometheus' history to a Parquet file.

use crate::Ended;
use crate::command::recommend::Prometheus;
use clap::ValueHint;
use std::fmt::Display;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use vellum_fleet::plan::{self, Writer};
use vellum_report::option::time;
use vellum_report::{Output, units};

const HOUR: Duration = Duration::from_secs(3600);

/// Write the curves in Prometheus as Parquet: a row for each container and hour.
///
/// The file is written as a whole or not at all. Each hour takes four queries of Prometheus.
///
/// Exit status: 0; 125 if Prometheus does not answer, or the file cannot be written.
#[derive(Debug, clap::Args)]
pub(super) struct Export {
    #[command(flatten)]
    prometheus: Prometheus,

    /// The length of the history, in whole hours.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "192h")]
    over: Duration,

    /// The file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "curves.parquet")]
    output: PathBuf,
}

pub(super) fn export(args: &Export) -> Ended {
    let failed = |why: &dyn Display| format!("cannot write {}: {why}", args.output.display());
    let output = Output::prepare(&args.output)?;
    let server = args.prometheus.server()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let hours = args.over.as_secs().div_ceil(HOUR.as_secs()).clamp(1, u64::from(u32::MAX)) as u32;
    let mut writer = Writer::new(BufWriter::new(output.sink()?)).map_err(|why| failed(&why))?;
    let rows = plan::export(&server, now.as_secs() as i64, hours, &mut writer)?;
    writer.finish().map_err(|why| failed(&why))?.flush().map_err(|why| failed(&why))?;
    output.place()?;
    let (rows, hours) = (units::many(rows, "row"), units::many(u64::from(hours), "hour"));
    say!("vellum: {rows} of {hours} in {}", args.output.display());
    Ok(0)
}
