//! `vellum bench`: benchmarks of programs and of Vellum's own operations.
//!
//! ```text
//! args ─┬─▶ programs ─▶ experiment's process duel ┬─ several programs: measure's Comparison ─▶ versus
//!       │                                         └─ one program: one series ────────────────▶ single
//!       └─▶ suite ────▶ timing's Suite ──────────────────────────────────────────────────────▶ suite
//!
//! versus, single, suite ─▶ causes (outliers, periods, lost time) ─▶ Report ─▶ text · JSON · … · all times
//! ```
//!
//! In the diagram, `experiment`, `measure` and `timing` are crates; other names in lower case are files here.
//! A *duel* runs programs in rounds of random order. The result of a benchmark is a [`report::Report`], which
//! `versus`, `single` or `suite` fills. It contains all verdicts before `text` prints it.
//!
//! The text goes to standard output, or to standard error if standard output is used for a file (`--json -`).
//! Progress, warnings about input and the message of a failed `--fail-above` go to standard error.

mod args;
mod causes;
mod chosen;
mod compared;
mod duel;
mod junit;
mod parameters;
mod programs;
mod report;
mod revision;
mod single;
mod steps;
mod suite;
mod text;
mod versus;
mod words;

pub(crate) use args::Bench;

use crate::failure::{FAILED, Failure, SIGNALLED};
use crate::screen;
use report::Report;
use vellum_measure::line::write_series;
use vellum_process::Interrupt;
use vellum_report::{Look, Output, Style, stderr, stdout};

/// The exit status if a program is shown to be slower than allowed.
const SLOWER: u8 = 1;
const _: () = assert!(SLOWER != FAILED);

/// The files of results besides the text: lines, Markdown, JUnit's XML and JSON.
type Files = [Option<Output>; 4];

/// Checks that the files can be written, before a possibly long measurement.
fn prepare(args: &Bench) -> Result<Files, Failure> {
    let mut files: Files = Default::default();
    for (file, path) in files.iter_mut().zip([&args.out, &args.markdown, &args.junit, &args.json]) {
        *file = path.as_deref().map(Output::prepare).transpose()?;
    }
    if to_stdout(&files) > 1 {
        const ONE: &str =
            "only one of --out, --json, --markdown and --junit can go to standard output (\"-\")";
        return Err(Failure::because(ONE));
    }
    Ok(files)
}

/// The number of files that go to standard output.
fn to_stdout(files: &Files) -> usize {
    files.iter().filter(|output| matches!(output, Some(Output::Stdout))).count()
}

/// Writes every file, even if another fails; returns the first failure.
fn write(files: Files, report: &Report) -> Result<(), Failure> {
    let lines = || {
        let mut lines = Vec::new();
        for series in &report.series {
            write_series(&mut lines, series)?;
        }
        Ok(lines)
    };
    let markdown = || Ok(compared::markdown(report).into_bytes());
    let junit = || Ok(junit::document(report).into_bytes());
    let json = || Ok(vellum_report::json(report)?.into_bytes());
    let [to_lines, to_markdown, to_junit, to_json] = files;
    let written =
        [put(to_lines, lines), put(to_markdown, markdown), put(to_junit, junit), put(to_json, json)];
    written.into_iter().collect()
}

/// Makes and writes one file, if it is requested.
fn put(output: Option<Output>, make: impl FnOnce() -> Result<Vec<u8>, Failure>) -> Result<(), Failure> {
    output.map_or(Ok(()), |output| Ok(output.write(make()?)?))
}

/// Runs the requested benchmark, and reports its result.
pub(crate) fn bench(args: &Bench) -> Result<u8, Failure> {
    let files = prepare(args)?;
    // A signal ends a suite at once; with programs, the complete rounds are still reported.
    let caught = if args.suite.is_none() { Interrupt::catch().ok() } else { None };
    let mut report = if args.suite.is_some() { suite::run(args)? } else { programs::run(args)? };
    let stopped = caught.and_then(|_caught| Interrupt::arrived());
    if stopped.is_some() {
        report.warnings.push("stopped early: the figures have the rounds completed before".to_owned());
    }
    let text_to_stderr = to_stdout(&files) > 0;
    let style = if text_to_stderr { Style::of_stderr() } else { Style::of_stdout() };
    let text = text::report(&report, args).text(Look::brief(style).wide(screen::columns()));
    // Files are written before the report, and each file regardless of the others.
    let kept = write(files, &report);
    let told = if text_to_stderr {
        stderr::write(format_args!("{text}"));
        Ok(())
    } else {
        stdout::write_all(text.as_bytes())
    };
    let failed = report.failed();
    for line in &failed {
        say!("error: {line}");
    }
    kept?;
    told?;
    Ok(match stopped {
        Some(signal) => SIGNALLED + signal as u8,
        None if failed.is_empty() => 0,
        None => SLOWER,
    })
}
