//! `vellum bench`: timings that can be trusted.
//!
//! ```text
//! args ─┬─▶ programs ─▶ probe's process duel ─┬─ with --vs:    measure's Comparison  ─▶ versus
//!       │                                     └─ without:      one series            ─▶ single
//!       └─▶ suite ────▶ probe's Suite ────────────────────────────────────────────────▶ suite
//!                                  all: ─▶ explain (layers, beats, causes) · baseline ─▶ Report ─▶ text · JSON
//!                                                                             series ──────────▶ lines · CSV
//! ```
//!
//! What a benchmark finds is a [`report::Report`], filled by the three above and then shown in words and tables (`text`) and
//! written as JSON. Nothing is judged while it is printed.
//!
//! Standard output has the report, standard error what is not a result: progress, warnings about input, the one line of a
//! gate that failed. If a file goes to standard output ("-"), the report gives way to standard error.

mod args;
mod baseline;
mod causes;
mod programs;
mod report;
mod single;
mod suite;
mod text;
mod versus;
mod words;

pub(crate) use args::Bench;

use crate::output::{self, Output};
use crate::run::Failure;
use crate::style::Style;
use crate::{FAILED, screen, stdout};
use report::Report;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use vellum_measure::csv::{self, CsvError};
use vellum_measure::line::{WriteError, write_series};
use vellum_measure::{BaselineError, CompareError};
use vellum_probe::process_duel::ProcessDuelError;
use vellum_probe::{Interrupt, SpawnError, bench};

/// The exit status when something is shown to be slower than allowed.
const SLOWER: u8 = 1;
const _: () = assert!(SLOWER != FAILED);

/// The exit status when a signal asked to stop: this and the signal's number.
pub(crate) const SIGNALLED: u8 = 128;

/// There is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchFailure {
    /// A program is missing beside the separator.
    #[error("there is no program {side} {separator:?}; write COMMAND {} COMMAND", .separator.display())]
    NoProgram {
        /// Before or behind.
        side: &'static str,
        /// What stands between programs.
        separator: OsString,
    },
    /// More than two programs.
    #[error(
        "{separator:?} stands in the command {count} times; two programs are compared. If a program has an argument \
         of that name, choose another word with --separator"
    )]
    Many {
        /// What stands between programs.
        separator: OsString,
        /// How often.
        count: usize,
    },
    /// Options that say two things.
    #[error("{0}")]
    Options(&'static str),
    /// Programs could not be timed.
    #[error("{0}")]
    Duel(#[from] ProcessDuelError),
    /// A suite could not be run.
    #[error(transparent)]
    Suite(#[from] bench::BenchError),
    /// No case was chosen.
    #[error("no case of the suite {suite} has {only:?} in its name; there are: {names}")]
    NoCase {
        /// The suite.
        suite: String,
        /// What was looked for.
        only: String,
        /// What there is.
        names: String,
    },
    /// Figures that cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A baseline cannot be used.
    #[error("{}: {source}", .path.display())]
    Baseline {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: BaselineError,
    },
    /// Observations cannot be written as CSV.
    #[error(transparent)]
    Csv(#[from] CsvError),
    /// Observations cannot be written.
    #[error(transparent)]
    Lines(#[from] WriteError),
}

impl BenchFailure {
    /// The error of a program that could not be started, whose status tells why.
    pub(crate) fn spawn(&self) -> Option<&SpawnError> {
        match self {
            BenchFailure::Duel(ProcessDuelError::Spawn(error)) => Some(error),
            _ => None,
        }
    }
}

/// Where results go, beside the text.
struct Files {
    out: Option<Output>,
    json: Option<Output>,
    csv: Option<Output>,
    save: Option<Output>,
}

impl Files {
    /// Finds out whether they can be written, before an hour of measuring.
    fn prepare(args: &Bench) -> Result<Files, Failure> {
        let prepare = |path: &Option<PathBuf>| path.as_deref().map(Output::prepare).transpose();
        let (out, json, csv, save) =
            (prepare(&args.out)?, prepare(&args.json)?, prepare(&args.csv)?, prepare(&args.save)?);
        let to_stdout = [&out, &json, &csv, &save].into_iter().flatten();
        if to_stdout.filter(|output| matches!(output, Output::Stdout)).count() > 1 {
            const ONE: &str = "only one of --out, --json, --csv and --save can go to standard output (\"-\")";
            return Err(BenchFailure::Options(ONE).into());
        }
        Ok(Files { out, json, csv, save })
    }

    fn take_stdout(&self) -> bool {
        let all = [&self.out, &self.json, &self.csv, &self.save];
        all.into_iter().any(|output| matches!(output, Some(Output::Stdout)))
    }

    /// Writes each, whatever becomes of the others; the first failure is told.
    fn write(self, report: &Report, label: &str) -> Result<(), Failure> {
        let lines = || {
            let mut lines = Vec::new();
            for series in &report.series {
                write_series(&mut lines, series).map_err(BenchFailure::Lines)?;
            }
            Ok(lines)
        };
        let table = || {
            let mut table = Vec::new();
            csv::write(&mut table, &report.series).map_err(BenchFailure::Csv)?;
            Ok(table)
        };
        let saved = || Ok(baseline::saved(report, label)?);
        let json = || Ok(output::json(report).into_bytes());
        let written =
            [put(self.out, lines), put(self.csv, table), put(self.save, saved), put(self.json, json)];
        written.into_iter().collect()
    }
}

/// Makes and writes one file, if it is wanted.
fn put(output: Option<Output>, make: impl FnOnce() -> Result<Vec<u8>, Failure>) -> Result<(), Failure> {
    output.map_or(Ok(()), |output| output.write(make()?))
}

/// Measures what was asked for, and says what was found.
pub(crate) fn bench(args: &Bench) -> Result<u8, Failure> {
    let files = Files::prepare(args)?;
    let before = args.baseline.as_deref().map(baseline::read).transpose()?;
    // A suite ends when it is told to; while programs run, those that are complete are worth having.
    let caught = if args.suite.is_none() { Interrupt::catch().ok() } else { None };
    let mut report = match &args.suite {
        Some(name) => suite::run(args, name, before.as_ref())?,
        None => programs::run(args, before.as_ref())?,
    };
    let stopped = caught.and_then(|_caught| Interrupt::arrived());
    if stopped.is_some() {
        report.warnings.push("it was stopped early: the figures are of what was complete by then".to_owned());
    }
    if let Some(before) = before {
        baseline::compare(&mut report, &before, args)?;
    }
    let text_to_stderr = files.take_stdout();
    let style = if text_to_stderr { Style::of_stderr() } else { Style::of_stdout() };
    let text = text::render(&report, args, style, screen::columns());
    // What was measured is kept first, and each in its place whatever becomes of the others.
    let kept = files.write(&report, &label(args));
    let told = if text_to_stderr {
        let written = std::io::stderr().lock().write_all(text.as_bytes());
        written.map_err(|source| Failure::Output { path: "standard error".into(), source })
    } else {
        stdout::write_all(text.as_bytes())
    };
    let failed = report.failed();
    for line in &failed {
        say!("vellum: {line}");
    }
    kept.and(told)?;
    Ok(match stopped {
        Some(signal) => SIGNALLED + signal as u8,
        None if failed.is_empty() => 0,
        None => SLOWER,
    })
}

/// What a saved baseline is called.
fn label(args: &Bench) -> String {
    let of_file = || {
        let stem = args.save.as_deref().and_then(Path::file_stem);
        stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
    };
    args.label.clone().unwrap_or_else(of_file)
}

/// The seed that was asked for, or one that is new and short enough to be typed again.
fn seed(args: &Bench) -> u64 {
    let fresh = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::from(now.subsec_micros()) ^ u64::from(std::process::id())
    };
    args.seed.unwrap_or_else(fresh)
}
