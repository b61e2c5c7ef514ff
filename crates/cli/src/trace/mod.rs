//! `vellum trace`: what a recorded page trace says a program needs.
//!
//! ```text
//! FILE or - ─▶ read (Trace ─▶ Intervals, one pass; bad lines are told) ─▶ report ─▶ text + plot │ JSON │ SVG
//!                     └─▶ --save: the same references as a page trace
//! ```
//!
//! The file is read once, as it streams by; what is kept is a table of the pages that are followed, not the trace.

mod read;
mod report;
mod text;

use crate::amount::{self, percentage};
use crate::output::{self, Output};
use crate::run::Failure;
use crate::style::Style;
use crate::{screen, stdout};
use clap::{ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use vellum_measure::plot::PlotError;
use vellum_workset::trace::{PageSize, TraceError};
use vellum_workset::{Criterion, SAMPLE_PAGES, SAMPLE_PAGES_MIN};

/// Lines of a plot in a terminal that has more.
const HEIGHT: usize = 18;
/// Lines that are left for the prompt.
const PROMPT: usize = 1;
/// The longest delay of a fault that has a meaning.
const DELAY_MAX: Duration = Duration::from_secs(60);
/// The fastest and the slowest processor, ticks a second.
const RATES: std::ops::RangeInclusive<f64> = 1.0..=1e12;

/// Compute a program's working-set curve, its knee and the memory to give it from a recorded trace of its references.
///
/// Reads what valgrind's tool lackey writes (--trace-mem=yes), and Vellum's own page traces (see --save); which of the two is
/// found out from the file. Exit status: 0, or 125 if there is nothing to read or vellum itself failed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  valgrind --tool=lackey --trace-mem=yes --log-file=ls.trace ls\n  vellum trace ls.trace\n  \
    vellum trace --delay 20us --svg ls.svg ls.trace\n  vellum trace --save ls.pages ls.trace && vellum trace ls.pages"
)]
pub(crate) struct TraceArgs {
    /// The trace; "-" is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// What a fault costs the program, S: 20us suits zram, 100us a solid-state disk, 8ms one that turns.
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = delay)]
    delay: Duration,

    /// Millions of instructions (or references, where the trace counts these) that the program executes in a second. A trace that is
    /// timed in nanoseconds does not need it.
    #[arg(long, value_name = "MILLIONS", default_value = "1000", value_parser = rate)]
    rate: f64,

    /// The waiting that is agreed to, in percent of the program's time.
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = percent)]
    cap: f64,

    /// What is to be least: pe, memory held in all; lt, memory held while waiting for pages.
    #[arg(long, value_name = "WHICH", default_value = "pe")]
    criterion: CriterionArg,

    /// The trace began in the middle of the program: first references are faults that memory could have saved.
    #[arg(long)]
    midway: bool,

    /// Bytes of a page, a power of 2; a page trace says itself what its pages are.
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = page_size)]
    page_size: PageSize,

    /// Follow at most this many pages, chosen by their numbers, each for as many as it takes: bounds memory (32 bytes a page).
    #[arg(long, value_name = "PAGES", default_value_t = SAMPLE_PAGES, value_parser = follow)]
    follow: usize,

    /// The seed of the interval's draws.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// End with an error at a line that cannot be read, instead of passing over it and saying so.
    #[arg(long)]
    strict: bool,

    /// Also write what was found as JSON (schema vellum.trace/1); "-" is standard output, and the text is left out.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,

    /// Draw the curve into this file instead of the terminal; "-" is standard output, and the text is left out.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    svg: Option<PathBuf>,

    /// Also write the references as a page trace, which is a fraction of lackey's text in size and time to read.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    save: Option<PathBuf>,

    /// Columns of the plot in the terminal (default: the terminal's, else 80; at least 40).
    #[arg(long, value_name = "COLUMNS")]
    width: Option<u16>,

    /// Lines of the plot in the terminal (default: 18, or fewer on a low terminal; at least 12).
    #[arg(long, value_name = "LINES")]
    height: Option<u16>,
}

/// What is to be least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CriterionArg {
    /// X, the space-time product in all.
    Pe,
    /// Y, the part of it that is waiting.
    Lt,
}

impl From<CriterionArg> for Criterion {
    fn from(criterion: CriterionArg) -> Criterion {
        match criterion {
            CriterionArg::Pe => Criterion::ProcessorEfficiency,
            CriterionArg::Lt => Criterion::Lifetime,
        }
    }
}

/// A trace says nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TraceFailure {
    /// It cannot be opened.
    #[error("trace: cannot open {}: {source}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It could not be read, or a line was refused.
    #[error("trace: {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// What was wrong.
        source: TraceError,
    },
    /// It holds no references, or no time passes in it.
    #[error(
        "trace: {file} holds no reference string ({references} references in {ticks} ticks); record one with `valgrind \
        --tool=lackey --trace-mem=yes --log-file=FILE PROGRAM`"
    )]
    Nothing {
        /// The file.
        file: String,
        /// What it holds.
        references: u64,
        /// How long it lasts.
        ticks: u64,
    },
    /// The picture could not be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

/// Reads a trace and tells what it says.
pub(crate) fn trace(args: &TraceArgs) -> Result<u8, Failure> {
    let json = args.json.as_deref().map(Output::prepare).transpose()?;
    let svg = args.svg.as_deref().map(Output::prepare).transpose()?;
    let told = [&json, &svg].iter().all(|output| !matches!(output, Some(Output::Stdout)));
    let read = read::read(args)?;
    let report = report::Report::new(args, &read)?;
    let drawn = svg.is_some();
    if let Some(output) = json {
        output.write(output::json(&report))?;
    }
    if let Some(output) = svg {
        output.write(report.chart().map_err(TraceFailure::Plot)?.svg())?;
    }
    if told {
        let style = Style::of_stdout();
        let mut words = text::text(&report, style);
        if !drawn {
            let width = args.width.map_or_else(screen::columns, usize::from);
            let lines = screen::lines().saturating_sub(PROMPT).min(HEIGHT);
            let height = args.height.map_or(lines, usize::from);
            let chart = report.chart().map_err(TraceFailure::Plot)?;
            words += &format!("\n{}", chart.terminal(width, height, style.is_coloured()));
        }
        stdout::write_all(words.as_bytes())?;
    }
    Ok(0)
}

fn delay(text: &str) -> Result<Duration, String> {
    amount::time(text, &(Duration::ZERO..=DELAY_MAX))
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().map(|millions: f64| millions * 1e6).filter(|rate| RATES.contains(rate));
    rate.ok_or_else(|| "a rate is millions a second, from 0.000001 to 1000000".to_owned())
}

fn percent(text: &str) -> Result<f64, String> {
    let part = percentage(text).map(|percent| percent / 100.0).filter(|part| (0.0..=10.0).contains(part));
    part.ok_or_else(|| "a percentage is a number from 0 to 1000".to_owned())
}

fn page_size(text: &str) -> Result<PageSize, String> {
    let size = text.parse().ok().and_then(PageSize::new);
    size.ok_or_else(|| "a page size is a power of 2, from 64 to 1073741824 bytes".to_owned())
}

fn follow(text: &str) -> Result<usize, String> {
    let pages = text.parse().ok().filter(|pages| (SAMPLE_PAGES_MIN..=1 << 28).contains(pages));
    pages.ok_or_else(|| format!("the number of pages is from {SAMPLE_PAGES_MIN} to {}", 1 << 28))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_their_units() {
        assert_eq!((rate("2000"), percent("2%"), percent("50")), (Ok(2e9), Ok(0.02), Ok(0.5)));
        assert!(delay("0s").is_ok() && delay("60s").is_ok() && delay("61s").is_err());
        assert!(rate("0").is_err() && rate("nan").is_err() && percent("-1").is_err());
        assert!(page_size("4095").is_err() && page_size("65536").is_ok());
        assert!(follow("1").is_err() && follow("256").is_ok());
    }
}
