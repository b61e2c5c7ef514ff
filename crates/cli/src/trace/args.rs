//! The options of `vellum trace`.

use clap::{ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use vellum_report::amount::{self, percentage};
use vellum_workset::trace::PageSize;
use vellum_workset::{Criterion, SAMPLE_PAGES, SAMPLE_PAGES_MIN};

/// The longest accepted delay of a fault.
const DELAY_MAX: Duration = Duration::from_secs(60);
/// The slowest and the fastest program, ticks a second.
const RATES: std::ops::RangeInclusive<f64> = 1.0..=1e12;

/// Compute a program's working-set curve, its knee and the memory it needs from a recorded reference trace.
///
/// Reads the output of valgrind's tool lackey (--trace-mem=yes) and Vellum's own page traces (see --save);
/// the format is recognized. Exit status: 0, or 125 if the trace is empty or vellum itself failed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  valgrind --tool=lackey --trace-mem=yes --log-file=ls.trace ls\n  vellum trace ls.trace\n  \
    vellum trace --delay 20us --svg ls.svg ls.trace\n  vellum trace --save ls.pages ls.trace && vellum trace ls.pages"
)]
pub(crate) struct TraceArgs {
    /// The trace; "-" is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: PathBuf,

    /// The delay of a page fault, S: 20us suits zram, 100us a solid-state disk, 8ms a hard disk.
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = delay)]
    pub(super) delay: Duration,

    /// Speed of the program, in millions of instructions per second (or references, if the trace counts
    /// these). Not needed for a trace timed in nanoseconds.
    #[arg(long, value_name = "MILLIONS", default_value = "1000", value_parser = rate)]
    pub(super) rate: f64,

    /// The accepted slowdown: waiting for page faults, in percent of the program's time.
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = percent)]
    pub(super) cap: f64,

    /// The quantity to minimize: pe, the whole space-time product; lt, the part of it spent waiting for
    /// pages.
    #[arg(long, value_name = "WHICH", default_value = "pe")]
    pub(super) criterion: CriterionArg,

    /// The trace begins in the middle of the program: first references count as avoidable faults.
    #[arg(long)]
    pub(super) midway: bool,

    /// The page size in bytes, a power of 2. A page trace has its own page size.
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = page_size)]
    pub(super) page_size: PageSize,

    /// Follow at most this many pages, a sample chosen by page number: bounds memory (32 bytes a page).
    #[arg(long, value_name = "PAGES", default_value_t = SAMPLE_PAGES, value_parser = follow)]
    pub(super) follow: usize,

    /// The seed of the random draws for the confidence interval.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Stop with an error at the first line that cannot be read. Otherwise such lines are reported and
    /// skipped.
    #[arg(long)]
    pub(super) strict: bool,

    /// Also write the result as JSON (schema vellum.trace/1); "-" is standard output, instead of the text.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) json: Option<PathBuf>,

    /// Draw the curve as SVG into this file instead of the terminal; "-" is standard output, instead of the
    /// text.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) svg: Option<PathBuf>,

    /// Also write the references as a page trace, which is much smaller and faster to read than the text of
    /// lackey.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) save: Option<PathBuf>,

    /// Columns of the plot in the terminal (default: the terminal's, else 80; at least 40).
    #[arg(long, value_name = "COLUMNS")]
    pub(super) width: Option<u16>,

    /// Lines of the plot in the terminal (default: 18, or fewer on a low terminal; at least 12).
    #[arg(long, value_name = "LINES")]
    pub(super) height: Option<u16>,
}

/// The quantity to minimize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CriterionArg {
    /// X, the whole space-time product.
    Pe,
    /// Y, the part of the product spent waiting.
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
    let size = amount::size(text).and_then(PageSize::new);
    size.ok_or_else(|| "a page size is a power of 2, from 64 bytes to 1 GiB".to_owned())
}

fn follow(text: &str) -> Result<usize, String> {
    let pages = text.parse().ok().filter(|pages| (SAMPLE_PAGES_MIN..=1 << 28).contains(pages));
    pages.ok_or_else(|| format!("the number of pages is from {SAMPLE_PAGES_MIN} to {}", 1 << 28))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_values_parse_with_units() {
        assert_eq!((rate("2000"), percent("2%"), percent("50")), (Ok(2e9), Ok(0.02), Ok(0.5)));
        assert!(delay("0s").is_ok() && delay("60s").is_ok() && delay("61s").is_err());
        assert!(rate("0").is_err() && rate("nan").is_err() && percent("-1").is_err());
        assert!(page_size("4095").is_err() && page_size("64K").is_ok());
        assert!(follow("1").is_err() && follow("256").is_ok());
    }
}
