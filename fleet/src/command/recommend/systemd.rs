//! `vellum recommend systemd`: writes a drop-in for each service; with `--dry-run`, only prints a report.
//!
//! The command writes only after it has read the whole history. Each file is written as a whole.

use super::{Made, Prometheus};
use crate::Ended;
use clap::ValueHint;
use std::path::PathBuf;
use vellum_fleet::recommend::decide::{Verdict, decide};
use vellum_fleet::recommend::dropins::{self, FILE};
use vellum_fleet::recommend::history;
use vellum_report::{stdout, units};

/// Write a drop-in with MemoryHigh for each service of this machine.
///
/// The number is the largest recommendation in the history plus the margin. The number is never below the
/// recommendation, goes down in steps, and goes up at once if a service stalls under it. Services with too
/// little history get no number. The output and the file give the reason of each number. `systemctl
/// daemon-reload` puts the files into force; MemoryHigh needs control groups of version 2.
///
/// Exit status: 0; 125 if Prometheus does not answer, or a file cannot be written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  vellum recommend systemd --dry-run\n  \
    vellum recommend systemd --prometheus http://127.0.0.1:9090 --instance node7:9189")]
pub(super) struct Systemd {
    #[command(flatten)]
    prometheus: Prometheus,

    #[command(flatten)]
    made: Made,

    /// The label `instance` of this machine, needed if Prometheus has several.
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,

    /// The directory of the drop-ins.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "/etc/systemd/system")]
    directory: PathBuf,

    /// Print the numbers and their reasons, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn recommend(args: &Systemd) -> Ended {
    let rules = args.made.rules();
    let histories = history::units(&args.prometheus.server()?, args.instance.as_deref(), args.made.over)?;
    let (mut text, mut written) = (String::new(), 0);
    for (unit, history) in &histories {
        let shown = unit.replace(char::is_control, "?");
        if !dropins::is_service(unit) {
            text += &format!("{shown}: left alone: it is no service\n");
            continue;
        }
        let current = dropins::current(&args.directory, unit);
        let (verdict, why) = decide(history, current, &rules);
        text += &match verdict {
            Verdict::Nothing => format!("{shown}: left alone: {why}\n"),
            Verdict::Keep => format!("{shown}: kept: {why}\n"),
            Verdict::Set(bytes) => {
                let before = current.map_or("none".to_owned(), units::bytes);
                let after = units::bytes(bytes);
                if !args.dry_run {
                    dropins::write(&args.directory, unit, bytes, &why)?;
                }
                written += 1;
                format!("{shown}: MemoryHigh {before} -> {after}: {why}\n")
            }
        };
    }
    let directory = args.directory.display();
    text += &match (histories.len(), written, args.dry_run) {
        (0, ..) => {
            "Prometheus has no series of a unit: does it fetch the metrics of `vellum agent`?".to_owned()
        }
        (_, 0, _) => "nothing to change".to_owned(),
        (_, count, true) => format!("{count} would be written, to UNIT.d/{FILE} in {directory}"),
        (_, count, false) => {
            format!("{count} written in {directory}; `systemctl daemon-reload` takes them into force")
        }
    };
    text.push('\n');
    stdout::write_all(text.as_bytes())?;
    Ok(0)
}
