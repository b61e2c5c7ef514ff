//! `vellum watch` on the command line.

use crate::amount::{self, percentage};
use clap::ValueHint;
use std::path::PathBuf;
use std::time::Duration;
use vellum_probe::reference::{Options, SourceKind, WINDOWS_MAX};

/// The longest time that can be asked for.
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The source's name that leaves the choice to us.
const AUTO: &str = "auto";

/// Watch how much memory a running program is worth, without privilege and without restarting it.
///
/// SUBJECT is a process id (its descendants are watched with it), the name of programs of yours, or a file that --record wrote. On a
/// terminal the working-set curve is drawn anew each period; elsewhere each period is a line, and the whole comes at the end.
/// Exit status: 0; 125 when there is nothing to watch, or it may not be watched.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum watch 4711\n  vellum watch postgres --for 1min --record postgres.watch\n  \
    vellum watch postgres.watch\n  vellum watch --cgroup /sys/fs/cgroup/user.slice --once"
)]
pub(crate) struct Watch {
    /// A process id, a program's name, or a recorded watch.
    #[arg(value_name = "SUBJECT", required_unless_present_any = ["cgroup", "sources"], conflicts_with = "cgroup")]
    pub(super) subject: Option<String>,

    /// Watch all processes of this control group and of those below it.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) cgroup: Option<PathBuf>,

    /// Keep what is shown, moment by moment, in a file that `vellum watch FILE` shows again.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) record: Option<PathBuf>,

    /// Write to standard output what --record would write to a file: a JSON object a line (schema vellum.watch/1).
    #[arg(long)]
    pub(super) json: bool,

    /// End as soon as there is a curve from one whole cycle.
    #[arg(long)]
    pub(super) once: bool,

    /// End after this time, such as 30s or 5min.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(super) time: Option<Duration>,

    /// How often something is shown, from 100ms.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s")]
    pub(super) period: Duration,

    /// The smallest window, in the job's user CPU time, from 50ms; each further one is twice as long.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "100ms")]
    pub(super) delta: Duration,

    /// How many windows.
    #[arg(long, value_name = "N", default_value_t = Options::default().windows,
        value_parser = clap::value_parser!(u32).range(4..=i64::from(WINDOWS_MAX)))]
    pub(super) windows: u32,

    /// The part of the job's CPU time that watching may cost. Large jobs are looked at less often to keep to it.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1%")]
    pub(super) budget: f64,

    /// What a page fault costs, such as 100us, instead of measuring it on this machine's swap or disk.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) delay: Option<Duration>,

    /// How references are learnt: auto, which takes what will cost less, or one of those that --sources lists.
    #[arg(long, value_name = "NAME", value_parser = source, default_value = AUTO)]
    pub(super) source: Choice,

    /// Say which sources this machine has, and why it lacks the others.
    #[arg(long, exclusive = true)]
    pub(super) sources: bool,
}

impl Watch {
    pub(super) fn options(&self) -> Options {
        Options {
            delta: self.delta,
            windows: self.windows,
            budget: self.budget,
            source: self.source.0,
            ..Options::default()
        }
    }
}

/// A time with its unit.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    amount::time(text, &(Duration::from_nanos(1)..=TIME_MAX))
}

/// A part, as a percentage.
fn percent(text: &str) -> Result<f64, String> {
    let part = percentage(text).filter(|percent| *percent > 0.0 && *percent <= 100.0);
    part.map(|percent| percent / 100.0).ok_or_else(|| "write a percentage above 0, such as 1%".to_owned())
}

/// A source, or none for the first that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice(Option<SourceKind>);

fn source(text: &str) -> Result<Choice, String> {
    if text == AUTO {
        return Ok(Choice(None));
    }
    let known = SourceKind::ALL.into_iter().find(|kind| kind.name() == text);
    let names = || format!("the sources are {AUTO}, {}", SourceKind::ALL.map(SourceKind::name).join(", "));
    known.map(|kind| Choice(Some(kind))).ok_or_else(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_parts_and_sources_are_read() {
        assert!(time("20us").is_ok() && time("0s").is_err() && time("8761h").is_err());
        assert_eq!((percent("1%"), percent("50")), (Ok(0.01), Ok(0.5)));
        assert!(["0%", "101%", "x", "-1", "NaN"].iter().all(|text| percent(text).is_err()));
        assert_eq!(source("damon"), Ok(Choice(Some(SourceKind::Damon))));
        assert_eq!(source("auto"), Ok(Choice(None)));
        assert!(source("stars").unwrap_err().contains("accessed-bits"));
    }
}
