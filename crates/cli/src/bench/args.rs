//! The options of `vellum bench`.

use crate::compare::fresh_seed;
use clap::{ValueEnum, ValueHint};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use vellum_experiment::process_duel;
use vellum_report::amount::{self, percentage};
use vellum_timing::bench::{BATCH_MAX, Batching};
use vellum_timing::clock::ClockKind;
use vellum_timing::suites;

/// The default time for measuring programs.
const TIME: Duration = Duration::from_secs(6);
/// The default of the longest time with --until.
const TIME_UNTIL: Duration = Duration::from_secs(300);
/// The shortest and the longest time that --time accepts.
const TIME_MIN: Duration = Duration::from_millis(1);
pub(super) const TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// Time programs, or Vellum's own operations, with confidence intervals.
///
/// With --vs, programs run alternately in random order, and the first is also compared with itself. This
/// control measures the noise; smaller differences are not reported. Several --vs compare several programs
/// with the first, -L one program with several values of a parameter, --vs-ref the program with the same
/// program of another revision. Without these, one program is described: its undisturbed time, and the causes
/// of its outliers. With --suite, operations of this process are timed. The programs' output is discarded
/// unless --output selects something else.
///
/// Exit status: 0; 1 when --fail-above finds a slowdown; 127 when a program is not found, 126 when it cannot
/// be executed; 125 when a program or vellum itself failed.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "vellum bench [OPTIONS] -- COMMAND [ARGS]... [--vs COMMAND [ARGS]...]...\n       vellum bench [OPTIONS] --suite NAME",
    after_help = "Examples:\n  vellum bench -- ./old data --vs ./new data\n  vellum bench --fail-above 2% -- ./main --vs ./branch\n  \
    vellum bench -L threads 1,2,4 -- ./prog --threads {threads}\n  \
    vellum bench --vs-ref main --build make -- ./prog data\n  \
    vellum bench --metric instructions --counter valgrind -- ./old --vs ./new\n  \
    vellum bench --out x.obs -- ./prog && vellum plot x.obs\n  \
    vellum bench --suite memory --out memory.obs && vellum obs stat memory.obs"
)]
pub(crate) struct Bench {
    /// Time this suite of Vellum's own operations, in this process.
    #[arg(long, value_name = "NAME", conflicts_with = "command", value_parser = [suites::MEMORY])]
    pub(super) suite: Option<String>,

    /// Only cases of the suite whose names contain this.
    #[arg(long, value_name = "TEXT", requires = "suite")]
    pub(super) only: Option<String>,

    /// How long to measure, such as 10s, 500ms or 2min (default: 6s; with --suite, at most 3s a case).
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(super) time: Option<Duration>,

    /// Stop as soon as the difference is known to within this, such as 1%; --time is then the longest time
    /// (default: 5min).
    #[arg(long, value_name = "PERCENT", value_parser = half_width, conflicts_with = "suite")]
    pub(super) until: Option<f64>,

    /// A parameter and its values, separated by commas: each value replaces {NAME} in the commands in turn.
    #[arg(short = 'L', long, num_args = 2, value_names = ["NAME", "VALUES"], conflicts_with = "suite")]
    pub(super) parameter: Vec<String>,

    /// Compare the program with its version at this revision of git, built beside it; the revision is A.
    #[arg(long, value_name = "REVISION", conflicts_with = "suite")]
    pub(super) vs_ref: Option<String>,

    /// The command that builds both revisions: a line for the shell, run at the top of each tree.
    #[arg(long, value_name = "LINE", requires = "vs_ref")]
    pub(super) build: Option<OsString>,

    /// Run this line in the shell before the first run of each program.
    #[arg(long, value_name = "LINE", conflicts_with = "suite")]
    pub(super) setup: Option<OsString>,

    /// Run this line before every run, untimed.
    #[arg(long, value_name = "LINE", conflicts_with = "suite")]
    pub(super) prepare: Option<OsString>,

    /// Run this line after every run, untimed.
    #[arg(long, value_name = "LINE", conflicts_with = "suite")]
    pub(super) conclude: Option<OsString>,

    /// Run this line at the end, for each program.
    #[arg(long, value_name = "LINE", conflicts_with = "suite")]
    pub(super) cleanup: Option<OsString>,

    /// The number of rounds (with --suite, of observations), regardless of time (default: as many as fit the
    /// time, at least 10; with --suite, 1000).
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) rounds: Option<u32>,

    /// Warm-up rounds, which are discarded (default: 1); with --suite, milliseconds (default: 50).
    #[arg(long, value_name = "N")]
    pub(super) warm_up: Option<u32>,

    /// The figure by which programs are compared.
    #[arg(long, value_name = "WHICH", default_value = "cpu", conflicts_with = "suite")]
    pub(super) metric: Metric,

    /// The counter of instructions, for --metric instructions (default: hardware).
    #[arg(long, value_name = "WHICH", conflicts_with = "suite")]
    pub(super) counter: Option<CounterArg>,

    /// The clock: tsc, tsc-fenced, monotonic, monotonic-raw or thread-cpu (default: tsc-fenced if it is
    /// reliable, else monotonic-raw).
    #[arg(long, value_name = "CLOCK")]
    pub(super) clock: Option<ClockKind>,

    /// The low quantile to report, in percent (default: 10; 1 is more repeatable for programs that allocate
    /// much).
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = share)]
    pub(super) low: f64,

    /// The seed of the random order; printed with the result (default: a new one).
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Do not repeat the comparison in a second order, which checks that the result does not depend on the
    /// order.
    #[arg(long, conflicts_with = "suite")]
    pub(super) no_order_check: bool,

    /// The destination of the programs' standard output. Their standard error is shown if they fail.
    #[arg(long, value_name = "WHAT", default_value = "discard", conflicts_with = "suite")]
    pub(super) output: OutputArg,

    /// The standard input of each run, from the file's beginning (default: empty).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "suite")]
    pub(super) input: Option<PathBuf>,

    /// Count failed runs like others. Without this, a failure ends the benchmark.
    #[arg(short, long, conflicts_with = "suite")]
    pub(super) ignore_failure: bool,

    /// Subtract the time that starting and ending an empty program takes.
    #[arg(long, conflicts_with = "suite")]
    pub(super) subtract_start: bool,

    /// The word between two programs, for commands that have their own option --vs.
    #[arg(
        long,
        value_name = "WORD",
        default_value = "--vs",
        allow_hyphen_values = true,
        conflicts_with = "suite"
    )]
    pub(super) separator: OsString,

    /// Operations too short for the clock: refuse, auto (batches as large as needed), or a batch size.
    #[arg(long, value_name = "HOW", default_value = "refuse", value_parser = batching, requires = "suite")]
    pub(super) batch: Batching,

    /// Suspend garbage collection during each measurement.
    #[arg(long, requires = "suite")]
    pub(super) hold_collectors: bool,

    /// Exit with status 1 if B is shown to be slower than A by more than this, such as 2%, or has more of
    /// --metric.
    #[arg(long, value_name = "PERCENT", value_parser = allowed, conflicts_with = "suite")]
    pub(super) fail_above: Option<f64>,

    /// The name of the program in files (default: its name and arguments).
    #[arg(long, value_name = "NAME", conflicts_with = "suite")]
    pub(super) name: Option<String>,

    /// Also write every observation as lines, for vellum plot and vellum obs; "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) out: Option<PathBuf>,

    /// Also write results and observations as JSON (schema vellum.bench/1); "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) json: Option<PathBuf>,

    /// Also write the tables as Markdown; "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) markdown: Option<PathBuf>,

    /// Also write the verdicts as test cases, which fail as --fail-above does (JUnit's XML); "-" is standard
    /// output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) junit: Option<PathBuf>,

    /// Print the causes of outliers.
    #[arg(long)]
    pub(super) attribute: bool,

    /// Print periodic disturbances.
    #[arg(long)]
    pub(super) periods: bool,

    /// Print only the verdict.
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// The program and its arguments; after each --vs, another program and its arguments.
    #[arg(required_unless_present = "suite", trailing_var_arg = true, allow_hyphen_values = true,
        value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
}

/// The figures by which programs can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Metric {
    /// User and system time: the time that other programs affect least.
    Cpu,
    /// Elapsed time from start to end.
    Wall,
    /// Instructions executed in user mode: hardly vary, but exclude the effects of caches and the kernel.
    Instructions,
}

/// The counters of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CounterArg {
    /// The processor's counters: free, and missing in most virtual machines.
    Hardware,
    /// Valgrind, wherever it is installed: slows runs 4 to 30 times, and adds about 0.3 s to each.
    Valgrind,
}

/// Destinations of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputArg {
    /// To /dev/null. Some programs detect that, and do less work.
    Discard,
    /// Stored, and required to be the same each time.
    Equal,
    /// To the standard output of this command.
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
    /// True if the programs run under valgrind, so that only their instruction counts are meaningful.
    pub(super) fn under_valgrind(&self) -> bool {
        self.counter == Some(CounterArg::Valgrind)
    }

    /// The metrics that are available, the deciding one first.
    pub(super) fn metrics(&self) -> &'static [Metric] {
        match self.metric {
            Metric::Cpu => &[Metric::Cpu, Metric::Wall],
            Metric::Wall => &[Metric::Wall, Metric::Cpu],
            Metric::Instructions if self.under_valgrind() => &[Metric::Instructions],
            Metric::Instructions => &[Metric::Instructions, Metric::Cpu, Metric::Wall],
        }
    }

    /// The reason why no second order is run, if the options rule it out.
    pub(super) fn order_unchecked(&self) -> Option<&'static str> {
        if self.metric == Metric::Instructions {
            Some("the order was not checked: instructions hardly depend on it")
        } else {
            self.no_order_check.then_some("the order was not checked (--no-order-check)")
        }
    }

    /// The time for measuring: the option's, or the default.
    pub(super) fn time_or_default(&self) -> Duration {
        self.time.unwrap_or(if self.until.is_some() { TIME_UNTIL } else { TIME })
    }

    /// The seed: the option's, or a new seed.
    pub(super) fn seed_or_fresh(&self) -> u64 {
        self.seed.unwrap_or_else(fresh_seed)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    amount::time(text, &(TIME_MIN..=TIME_MAX))
}

/// The allowed slowdown as a ratio: 1.02 for 2 %.
fn allowed(text: &str) -> Result<f64, String> {
    percentage_in(text, 0.0..=f64::MAX, "0, such as 2%").map(|share| 1.0 + share)
}

/// Half the width of an interval, as a logarithm: 0.00995 for 1 %.
fn half_width(text: &str) -> Result<f64, String> {
    percentage_in(text, 0.01..=100.0, "0.01 to 100, such as 1%").map(f64::ln_1p)
}

/// A share of observations, 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    percentage_in(text, 0.0..=100.0, "0 to 100, such as 10%")
}

/// A percentage in this range as a share of 1; `from` has the range in words.
fn percentage_in(text: &str, range: RangeInclusive<f64>, from: &str) -> Result<f64, String> {
    let found = percentage(text).filter(|percent| range.contains(percent));
    found.map(|percent| percent / 100.0).ok_or_else(|| format!("write a percentage from {from}"))
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
    fn percentages_parse_as_ratios() {
        assert_eq!((allowed("2%"), allowed("2"), allowed("0")), (Ok(1.02), Ok(1.02), Ok(1.0)));
        assert!(["-1%", "x", "", "inf"].iter().all(|text| allowed(text).is_err()));
        assert_eq!((share("10"), share("1 %")), (Ok(0.1), Ok(0.01)));
        assert!(share("101").is_err());
    }

    #[test]
    fn batches_parse_as_names_or_numbers() {
        assert_eq!((batching("auto"), batching("64")), (Ok(Batching::Auto), Ok(Batching::Of(64))));
        assert!(batching("0").is_err());
    }
}
