//! `vellum recommend slurm`: writes a table of memory by user and job name, for a plugin of `slurmctld`.

use super::Prometheus;
use crate::Ended;
use clap::ValueHint;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_fleet::recommend::slurm;
use vellum_report::option::{percent_or_none, time};
use vellum_report::{Output, stdout};

/// The maximum size of the accounting.
const BYTES_MAX: u64 = 1 << 30;

/// Make a table of the memory that Slurm jobs need, by user and name, for a job_submit plugin.
///
/// A row is the largest recommendation, on any node, of all watched jobs of that user and name, plus the
/// margin. The names of jobs come from Slurm's accounting (--jobs). A name gets no row if one of its jobs ran
/// out of memory or too few were watched; standard error gives the reason. The plugin is
/// examples/fleet/job_submit.lua.
///
/// Exit status: 0; 125 if Prometheus does not answer, or a file cannot be read or written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    sacct -a -X -n -P -S now-8days -o JobIDRaw,UID,JobName,State | vellum recommend slurm --jobs -\n  \
    vellum recommend slurm --jobs sacct.txt --output /etc/slurm/vellum.csv")]
pub(super) struct Slurm {
    #[command(flatten)]
    prometheus: Prometheus,

    /// Slurm's accounting, as written by `sacct -a -X -n -P -S now-8days -o JobIDRaw,UID,JobName,State`; -
    /// for standard input.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    jobs: PathBuf,

    /// The length of the history in which the largest recommendation is found.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "192h")]
    over: Duration,

    /// The least number of watched jobs for a row.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..), default_value = "3")]
    least_jobs: u64,

    /// The margin above the recommendation.
    #[arg(long, value_name = "PERCENT", value_parser = percent_or_none, default_value = "10%")]
    margin: f64,

    /// Write the table to this file, as a whole or not at all, in place of standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "dry_run")]
    output: Option<PathBuf>,

    /// Write JSON, with one row per line, in place of CSV.
    #[arg(long)]
    json: bool,

    /// Print the rows and their reasons, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

fn accounting(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(BYTES_MAX).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes))
    };
    read.map_err(|why| format!("--jobs {}: {why}; give what sacct wrote", path.display()))?;
    // A name that is not valid UTF-8 is left out later.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn recommend(args: &Slurm) -> Ended {
    let accounting = accounting(&args.jobs)?;
    let needs = slurm::ask(&args.prometheus.server()?, args.over)?;
    let table = slurm::table(&needs, &accounting, args.least_jobs, args.margin);
    if args.dry_run {
        let row = |row: &slurm::Row| {
            format!(
                "user {}, {}: {} MiB on each node: {}, of {} jobs\n",
                row.user, row.name, row.mib, row.reason, row.jobs
            )
        };
        let mut text: String = table.rows.iter().map(row).collect();
        text.extend(table.notes.iter().map(|note| format!("{note}\n")));
        stdout::write_all(text.as_bytes())?;
        return Ok(0);
    }
    for note in &table.notes {
        say!("vellum: {note}");
    }
    let text = if args.json { table.json() } else { table.csv() };
    let output = args.output.as_deref().unwrap_or(Path::new("-"));
    Output::prepare(output).and_then(|output| output.write(text))?;
    Ok(0)
}
