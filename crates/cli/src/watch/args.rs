//! The options of `vellum watch`.

use clap::ValueHint;
use std::path::PathBuf;
use std::time::Duration;
use vellum_reference::{Options, SourceChoice, WINDOWS_MAX};
use vellum_report::option::{percent, percent_or_none, time, time_or_none};

/// Estimate how much memory a running program needs, without privilege and without restarting it.
///
/// SUBJECT is a process id (its descendants are watched too), the name of your programs, or a file written by
/// --record. On a terminal the working-set curve is redrawn each period; elsewhere each period is a line, and
/// the whole report comes at the end. Exit status: 0; 125 if the process is missing, or may not be watched.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum watch 4711\n  vellum watch postgres --for 1min --record postgres.watch\n  \
    vellum watch postgres.watch\n  vellum watch --prove --cgroup /sys/fs/cgroup/job\n  vellum watch --cgroup /sys/fs/cgroup/user.slice --once"
)]
pub(crate) struct Watch {
    /// A process id, a program's name, or a recorded watch.
    #[arg(value_name = "SUBJECT", required_unless_present_any = ["cgroup", "sources"], conflicts_with = "cgroup")]
    pub(super) subject: Option<String>,

    /// Watch all processes of this control group and of those below it.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) cgroup: Option<PathBuf>,

    /// Record each period in a file, which `vellum watch FILE` shows again.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) record: Option<PathBuf>,

    /// Write the record to standard output: a JSON object a line (schema vellum.watch/1).
    #[arg(long)]
    pub(super) json: bool,

    /// End after the first complete cycle.
    #[arg(long)]
    pub(super) once: bool,

    /// End after this time, such as 30s or 5min.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(super) time: Option<Duration>,

    /// The time between two reports, from 100ms.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s")]
    pub(super) period: Duration,

    /// The smallest window, in the job's user CPU time, from 50ms; each further window is twice as long.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "100ms")]
    pub(super) delta: Duration,

    /// The number of windows.
    #[arg(long, value_name = "N", default_value_t = Options::default().windows,
        value_parser = clap::value_parser!(u32).range(4..=i64::from(WINDOWS_MAX)))]
    pub(super) windows: u32,

    /// The share of the job's CPU time that watching may cost. Large jobs are sampled less often to stay
    /// below it.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1%")]
    pub(super) budget: f64,

    /// The share of one processor that watching may cost, if that is more: it applies to jobs that hardly
    /// run. 0% for none.
    #[arg(long, value_name = "PERCENT", value_parser = percent_or_none, default_value = "0.05%")]
    pub(super) idle_budget: f64,

    /// The CPU time that the first two cycles may take ahead of the budget; the rest of the watch repays it.
    /// 0s for none.
    #[arg(long, value_name = "TIME", value_parser = time_or_none, default_value = "60ms")]
    pub(super) burst: Duration,

    /// Test the recommendation: squeeze the job's control group gently, starting at the curve's size, and
    /// count its faults. Ends when the smallest size is found that costs 2 %; no limit stays set. Needs a
    /// writable control group with memory, and swap or files to squeeze.
    #[arg(long, conflicts_with = "once")]
    pub(super) prove: bool,

    /// The delay of a page fault, such as 100us, instead of measuring it on the swap device or disk of this
    /// machine.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) delay: Option<Duration>,

    /// The source of references: auto (the cheapest usable), or a name that --sources lists.
    #[arg(long, value_name = "NAME", default_value = SourceChoice::AUTO)]
    pub(super) source: SourceChoice,

    /// List the sources of references on this machine, and the reasons why others are missing.
    #[arg(long, exclusive = true)]
    pub(super) sources: bool,
}

impl Watch {
    pub(super) fn options(&self) -> Options {
        Options {
            delta: self.delta,
            windows: self.windows,
            budget: self.budget,
            idle_budget: self.idle_budget,
            burst: self.burst,
            source: self.source.kind(),
            ..Options::default()
        }
    }
}
