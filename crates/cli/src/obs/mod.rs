//! `vellum obs`: selects parts of observation files (saved timings), and computes their statistics.
//!
//! ```text
//! obs grep PATTERN ─┐
//! obs cut RANGES   ─┼─▶ Input (observations.rs) ─▶ Filter (vellum-measure) ─▶ lines │ JSON
//! obs stat         ─┤                                 ├──────────▶ stat: table │ lines │ JSON
//! obs explain      ─┘                                 └──────────▶ explain: tables │ JSON
//! ```
//!
//! Series are read and written one at a time, as lines of any length. JSON is written at the end.
//!
//! Exit statuses are those of grep(1): 0 if anything was written, 1 if nothing was; 125 after a failure.
//!
//! Source: `bgrep`, `bcut` and `bench` in Bates 1999, "Reliable Benchmarking with Limbo on Inferno".

mod explain;
mod stat;

use crate::failure::{FAILED, Failure};
use crate::observations::{Choice, Input, pattern};
use clap::{Subcommand, ValueEnum};
use regex::Regex;
use vellum_measure::filter::{Filter, Ranges};
use vellum_measure::json;
use vellum_measure::line::write_entry;
use vellum_report::stdout;

/// Extract parts of files of observations, or show their statistics.
///
/// Files hold lines, such as NAME:1l:Observation:labels:Time:us 486 402 ..., of any length, or JSON (schema
/// vellum.observations/1). A line that cannot be read is reported by its number and skipped. Exit status: 0
/// if anything was written, 1 if nothing was, 125 if vellum itself failed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum obs grep '^BASE' x.obs | vellum plot -oo\n  vellum obs cut 1-200 x.obs\n  \
    vellum obs stat -o x.obs y.obs\n  vellum obs explain x.obs\n  vellum obs grep --select Cpu --to json . x.obs"
)]
pub(crate) struct Obs {
    #[command(subcommand)]
    pub(crate) what: What,
}

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Entries whose name matches a regular expression ("." is every one).
    Grep {
        /// The regular expression to search names for.
        #[arg(value_parser = pattern)]
        pattern: Regex,
        #[command(flatten)]
        part: Part,
    },
    /// Some observations of each series, by position.
    ///
    /// All columns of an observation are cut with it. Summaries pass unchanged: they hold no observations.
    Cut {
        /// Positions from 1, as in 1-200 or 5,300- or -10.
        #[arg(value_name = "RANGES", allow_hyphen_values = true)]
        ranges: Ranges,
        #[command(flatten)]
        part: Part,
    },
    /// Count, mean, smallest, largest, deviation and low quantile of each series.
    ///
    /// Times are per operation: the base is subtracted, and the result divided by the batch.
    Stat(stat::Stat),
    /// Explain outliers: causes of lost time, and periodic disturbances.
    Explain(explain::Explain),
}

/// The input, the chosen series, and the output format.
#[derive(Debug, clap::Args)]
pub(crate) struct Part {
    #[command(flatten)]
    choice: Choice,
    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "lines")]
    to: Format,
    #[command(flatten)]
    input: Input,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines, in the format of the input.
    Lines,
    /// One JSON document, schema vellum.observations/1.
    Json,
}

/// The exit status when there was nothing to write.
const NOTHING: u8 = 1;
const _: () = assert!(NOTHING != FAILED);

/// 0 if something was written, even if the reader closed the output early.
fn status(written: Option<usize>) -> u8 {
    if written == Some(0) { NOTHING } else { 0 }
}

/// Runs the chosen subcommand.
pub(crate) fn obs(args: &Obs) -> Result<u8, Failure> {
    match &args.what {
        What::Grep { pattern, part } => pass(&part.input, &part.choice.filter(Some(pattern)), part.to),
        What::Cut { ranges, part } => {
            pass(&part.input, &Filter { ranges: Some(ranges.clone()), ..part.choice.filter(None) }, part.to)
        }
        What::Stat(stat) => stat::stat(stat),
        What::Explain(explain) => explain::obs_explain(explain),
    }
}

fn pass(input: &Input, filter: &Filter, to: Format) -> Result<u8, Failure> {
    let written = stdout::write_with::<_, Failure>(|out| match to {
        Format::Lines => {
            let mut written = 0usize;
            input.each(|entry| {
                for entry in filter.apply(entry) {
                    write_entry(out, &entry)?;
                    written += 1;
                }
                Ok(())
            })?;
            Ok(written)
        }
        Format::Json => {
            let (series, summaries, _) = input.series(filter)?;
            if summaries > 0 {
                say!(
                    "vellum: summaries left out, as they hold no observations: {summaries}; lines (--to lines) keep them"
                );
            }
            json::write(out, &series)?;
            Ok(series.len())
        }
    })?;
    Ok(status(written))
}
