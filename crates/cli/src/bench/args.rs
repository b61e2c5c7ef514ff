//! What can be asked of `vellum bench`.

use crate::amount::{self, percentage};
use clap::{ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use vellum_probe::bench::{BATCH_MAX, Batching};
use vellum_probe::clock::ClockKind;
use vellum_probe::process_duel;
use vellum_probe::suites;

/// How long a benchmark of programs goes on, unless told.
const TIME: Duration = Duration::from_secs(6);
/// The shortest and the longest that can be asked for.
const TIME_MIN: Duration = Duration::from_millis(1);
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// Time programs, or Vellum's own operations, so that the figures can be trusted.
///
/// With --vs, two programs run by turns in random order, and the first also against itself: what that control shows is
/// noise, and no smaller difference is claimed. Without, one program is described: how long it takes when nothing disturbs it,
/// what its outliers lost time to. With --suite, operations of this process are timed. The programs' output is discarded
/// unless --output says otherwise.
///
/// Exit status: 0; 1 when --fail-above finds it slower than allowed; 127 when a program is not found, 126 when it cannot
/// be executed; 125 when a program or vellum itself failed.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "vellum bench [OPTIONS] -- COMMAND [ARGS]... [--vs COMMAND [ARGS]...]\n       vellum bench [OPTIONS] --suite NAME",
    after_help = "Examples:\n  vellum bench -- ./old data --vs ./new data\n  vellum bench --fail-above 2% -- ./main --vs ./branch\n  \
    vellum bench --out x.obs -- ./prog && vellum plot x.obs\n  vellum bench --suite memory --save memory.json\n  \
    vellum bench --suite memory --baseline memory.json --fail-above 10%"
)]
pub(crate) struct Bench {
    /// Time this suite of Vellum's own operations, in this process.
    #[arg(long, value_name = "NAME", conflicts_with = "command", value_parser = suites::NAMES)]
    pub(super) suite: Option<String>,

    /// Of the suite, only cases whose names contain this.
    #[arg(long, value_name = "TEXT", requires = "suite")]
    pub(super) only: Option<String>,

    /// How long to measure, such as 10s, 500ms or 2min (default: 6s; with --suite, at most 3s a case).
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(super) time: Option<Duration>,

    /// Measure this many rounds (with --suite, observations), however long that takes (default: as many as fit the time, at least
    /// 10; with --suite, 1000).
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) rounds: Option<u32>,

    /// Rounds that are run first and thrown away (default: 1); with --suite, milliseconds (default: 50).
    #[arg(long, value_name = "N")]
    pub(super) warm_up: Option<u32>,

    /// Which time decides about programs.
    #[arg(long, value_name = "WHICH", default_value = "cpu", conflicts_with = "suite")]
    pub(super) metric: Metric,

    /// The clock: tsc, tsc-fenced, monotonic, monotonic-raw or thread-cpu (default: tsc-fenced if it can be trusted, else
    /// monotonic-raw).
    #[arg(long, value_name = "CLOCK")]
    pub(super) clock: Option<ClockKind>,

    /// The share of observations, in percent, below the absolute figure (default: 10; 1 repeats better for what allocates
    /// much).
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = share)]
    pub(super) low: f64,

    /// The seed of the random order; printed with the result (default: a new one).
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Do not run the programs in a second order to see whether the answer depends on it.
    #[arg(long, conflicts_with = "suite")]
    pub(super) no_order_check: bool,

    /// What becomes of the programs' standard output (their standard error is shown where they fail).
    #[arg(long, value_name = "WHAT", default_value = "discard", conflicts_with = "suite")]
    pub(super) output: OutputArg,

    /// What the programs read, each from its beginning (default: nothing).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "suite")]
    pub(super) input: Option<PathBuf>,

    /// Count programs that fail like others. Without this, a failure ends the benchmark.
    #[arg(short, long, conflicts_with = "suite")]
    pub(super) ignore_failure: bool,

    /// Take off what starting and ending a program that does nothing costs.
    #[arg(long, conflicts_with = "suite")]
    pub(super) subtract_start: bool,

    /// What stands between two programs, for commands that have a --vs of their own.
    #[arg(
        long,
        value_name = "WORD",
        default_value = "--vs",
        allow_hyphen_values = true,
        conflicts_with = "suite"
    )]
    pub(super) separator: OsString,

    /// What to do about operations too short for the clock: refuse, auto (as many at once as needed), or a number at once.
    #[arg(long, value_name = "HOW", default_value = "refuse", value_parser = batching, requires = "suite")]
    pub(super) batch: Batching,

    /// Keep collectors from collecting meanwhile.
    #[arg(long, requires = "suite")]
    pub(super) hold_collectors: bool,

    /// Exit with status 1 if it is shown to be slower by more than this, such as 2%: B than A, or than the baseline.
    #[arg(long, value_name = "PERCENT", value_parser = allowed)]
    pub(super) fail_above: Option<f64>,

    /// Write a baseline to compare with later (schema vellum.baseline/1).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) save: Option<PathBuf>,

    /// What the baseline is called (default: its file's name).
    #[arg(long, value_name = "TEXT", requires = "save")]
    pub(super) label: Option<String>,

    /// Compare with this baseline: weaker than --vs, as the machine has changed its pace since.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) baseline: Option<PathBuf>,

    /// What the program is called in files (default: its name and arguments).
    #[arg(long, value_name = "NAME", conflicts_with = "suite")]
    pub(super) name: Option<String>,

    /// Also write every observation as lines, for vellum plot and vellum obs; "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) out: Option<PathBuf>,

    /// Also write results and observations as JSON (schema vellum.bench/1); "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) json: Option<PathBuf>,

    /// Also write every observation as CSV; "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) csv: Option<PathBuf>,

    /// Print what outliers lost time to.
    #[arg(long)]
    pub(super) attribute: bool,

    /// Print which disturbances come back regularly.
    #[arg(long)]
    pub(super) periods: bool,

    /// Print the verdict alone.
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// The program and its arguments, and behind --vs those of the other.
    #[arg(required_unless_present = "suite", trailing_var_arg = true, allow_hyphen_values = true,
        value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
}

/// Which of a program's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Metric {
    /// User and system time: what other programs do to the machine moves it little.
    Cpu,
    /// From start to end: what somebody who waits sees.
    Wall,
}

/// What becomes of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputArg {
    /// It goes to /dev/null. Some programs notice, and work less.
    Discard,
    /// It is kept, and must be the same each time.
    Equal,
    /// It goes where ours goes.
    Inherit,
}

impl From<OutputArg> for process_duel::Output {
    fn from(output: OutputArg) -> Self {
        match output {
            OutputArg::Discard => process_duel::Output::Discard,
            OutputArg::Equal => process_duel::Output::Equal,
            OutputArg::Inherit => process_duel::Output::Inherit,
        }
    }
}

impl Bench {
    /// How long programs are measured.
    pub(super) fn time_or_default(&self) -> Duration {
        self.time.unwrap_or(TIME)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    amount::time(text, &(TIME_MIN..=TIME_MAX))
}

/// How much slower is allowed, as a ratio: 1.02 for 2 %.
fn allowed(text: &str) -> Result<f64, String> {
    let found = percentage(text).filter(|percent| *percent >= 0.0);
    found
        .map(|percent| 1.0 + percent / 100.0)
        .ok_or_else(|| "write a percentage from 0, such as 2%".to_owned())
}

/// A share of observations, 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let found = percentage(text).filter(|percent| (0.0..=100.0).contains(percent));
    found
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "write a percentage from 0 to 100, such as 10%".to_owned())
}

fn batching(text: &str) -> Result<Batching, String> {
    match text {
        "refuse" => Ok(Batching::Refuse),
        "auto" => Ok(Batching::Auto),
        number => match number.parse() {
            Ok(batch) if (1..=BATCH_MAX).contains(&batch) => Ok(Batching::Of(batch)),
            _ => Err(format!("write refuse, auto, or a number from 1 to {BATCH_MAX}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_ratios() {
        assert_eq!((allowed("2%"), allowed("2"), allowed("0")), (Ok(1.02), Ok(1.02), Ok(1.0)));
        assert!(["-1%", "x", "", "inf"].iter().all(|text| allowed(text).is_err()));
        assert_eq!((share("10"), share("1 %")), (Ok(0.1), Ok(0.01)));
        assert!(share("101").is_err());
    }

    #[test]
    fn batches_are_named_or_counted() {
        assert_eq!((batching("auto"), batching("64")), (Ok(Batching::Auto), Ok(Batching::Of(64))));
        assert!(batching("0").is_err());
    }
}
