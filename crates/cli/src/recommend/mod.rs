//! `vellum recommend`: what to set, by what Prometheus remembers of `vellum agent`.
//!
//! ```text
//! history of each unit ─▶ a number, and why ─┬─▶ a drop-in for systemd
//!                                  --dry-run └─▶ only the words
//! ```
//!
//! Nothing is written before all of the history was read; then each file is written whole. Nothing is
//! started, stopped or reloaded.

use crate::failure::Failure;
use crate::watch::{percent_or_none, time, time_or_none};
use clap::{Subcommand, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use vellum_fleet::Address;
use vellum_fleet::recommend::decide::{Rules, Verdict, decide};
use vellum_fleet::recommend::dropins::{self, FILE};
use vellum_fleet::recommend::history::{self, Question};
use vellum_governor::TokenFile;
use vellum_report::{stdout, units};

/// Derive settings from what Prometheus remembers of `vellum agent`.
#[derive(Debug, clap::Args)]
pub(crate) struct Recommend {
    #[command(subcommand)]
    to: To,
}

#[derive(Debug, Subcommand)]
enum To {
    Systemd(Systemd),
}

/// Write a drop-in with MemoryHigh for each service of this machine.
///
/// The number is the largest advice of the time asked for, and a margin. It is never below that, goes down in
/// steps, and up at once where a service stalls under it. Services with too little history get none. Each
/// number has its reason, in the output and in the file. `systemctl daemon-reload` takes the files into
/// force; MemoryHigh needs control groups of version 2.
///
/// Exit status: 0; 125 if Prometheus does not answer, or a file cannot be written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  vellum recommend systemd --dry-run\n  \
    vellum recommend systemd --prometheus http://127.0.0.1:9090 --instance node7:9189")]
struct Systemd {
    /// Prometheus, or what speaks as it does.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090", value_parser = address)]
    prometheus: Address,

    /// A file with the token for it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,

    /// The label `instance` of this machine; needed where Prometheus knows several.
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,

    /// How far back the largest advice is looked for.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "192h")]
    over: Duration,

    /// The least history that a number is made of.
    #[arg(long, value_name = "TIME", value_parser = time_or_none, default_value = "24h")]
    least: Duration,

    /// What is given beyond the advice.
    #[arg(long, value_name = "PERCENT", value_parser = percent_or_none, default_value = "10%")]
    margin: f64,

    /// Where drop-ins are.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "/etc/systemd/system")]
    directory: PathBuf,

    /// Only say what would be set, and why.
    #[arg(long)]
    dry_run: bool,
}

fn address(text: &str) -> Result<Address, String> {
    Address::parse(text, "").map_err(|why| why.to_string())
}

/// Recommends.
pub(crate) fn recommend(args: &Recommend) -> Result<u8, Failure> {
    let To::Systemd(args) = &args.to;
    let token = args.token_file.as_deref().map(TokenFile::open).transpose().map_err(Failure::of)?;
    let question = Question {
        prometheus: args.prometheus.clone(),
        token: token.and_then(|file| file.token()),
        instance: args.instance.clone(),
        over: args.over,
    };
    let rules = Rules { least: args.least, margin: args.margin };
    let histories = history::ask(&question).map_err(Failure::of)?;
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
                    dropins::write(&args.directory, unit, bytes, &why).map_err(Failure::of)?;
                }
                written += 1;
                format!("{shown}: MemoryHigh {before} -> {after}: {why}\n")
            }
        };
    }
    text += &match (histories.len(), written, args.dry_run) {
        (0, ..) => "Prometheus knows no unit: does it fetch the metrics of `vellum agent`?\n".to_owned(),
        (_, 0, _) => "nothing to change\n".to_owned(),
        (_, count, true) => {
            format!("{count} would be written, to UNIT.d/{FILE} in {}\n", args.directory.display())
        }
        (_, count, false) => {
            format!(
                "{count} written in {}; `systemctl daemon-reload` takes them into force\n",
                args.directory.display()
            )
        }
    };
    stdout::write_all(text.as_bytes())?;
    Ok(0)
}
