//! `vellum plan export`: writes the working-set curves of Prometheus' history to a Parquet file.

use crate::Ended;
use crate::command::recommend::Prometheus;
use clap::ValueHint;
use std::fs::Permissions;
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use vellum_fleet::plan::{self, Hours, Writer};
use vellum_report::option::time;
use vellum_report::{OutputError, units};

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
    let failed = |source: io::Error| OutputError { path: args.output.clone(), source };
    let folder =
        args.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Temporary files are private by default; this one gets the permissions of the umask.
    let file = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder);
    let file = file.map_err(failed)?;
    let server = args.prometheus.server()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let count = args.over.as_secs().div_ceil(HOUR.as_secs()).clamp(1, u64::from(u32::MAX)) as u32;
    let hours = Hours::before(now.as_secs() as i64, count);
    let parquet = |why: &dyn std::fmt::Display| failed(io::Error::other(why.to_string()));
    let mut writer = Writer::new(BufWriter::new(file)).map_err(|why| parquet(&why))?;
    let rows = plan::export(&server, hours, &mut writer, |_, _| ())?;
    let out = writer.finish().map_err(|why| parquet(&why))?;
    let file = out.into_inner().map_err(|why| failed(why.into_error()))?;
    file.persist(&args.output).map_err(|why| failed(why.error))?;
    let (rows, hours) = (units::many(rows, "row"), units::many(u64::from(count), "hour"));
    say!("vellum: {rows} of {hours} in {}", args.output.display());
    Ok(0)
}
