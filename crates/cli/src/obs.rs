//! `vellum obs`: parts of files of observations, and their figures.
//!
//! ```text
//! obs grep PATTERN ─┐
//! obs cut RANGES   ─┼─▶ Input (observations) ─▶ Filter (measure) ─▶ lines │ JSON │ CSV
//! obs stat         ─┤                                 ├──────────▶ obs_stat: table │ lines │ JSON
//! obs explain      ─┘                                 └──────────▶ obs_explain: tables │ JSON
//! ```
//!
//! As lines everything streams, one series at a time and whatever its length. JSON and CSV are written when all is read.
//!
//! Exit statuses as grep(1)'s: 0 if anything was written, 1 if nothing was there to write; 125 if the command failed.
//!
//! Source: Bates' `bgrep` and `bcut`, and the summaries his `bench` prints unless asked for observations.

use crate::FAILED;
use crate::observations::{Choice, Input, pattern};
use crate::run::Failure;
use crate::{obs_explain, obs_stat, stdout};
use clap::{Subcommand, ValueEnum};
use std::io::Write;
use vellum_measure::Series;
use vellum_measure::csv::{self, CsvError};
use vellum_measure::filter::{Filter, Ranges};
use vellum_measure::json::{self, JsonError};
use vellum_measure::line::{Entry, WriteError, write_entry};

/// The exit status when there was nothing to write.
const NOTHING: u8 = 1;

/// Take parts out of files of observations, or show their figures.
///
/// Files hold lines, NAME:1l:Observation:labels:Time:us 486 402 ..., of any length, or JSON (schema vellum.observations/1).
/// A line that cannot be read is told by its number and passed over. Exit status: 0 if anything was written, 1 if there
/// was nothing, 125 if vellum itself failed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum obs grep '^BASE' x.obs | vellum plot -oo\n  vellum obs cut 1-200 x.obs\n  \
    vellum obs stat -o x.obs y.obs\n  vellum obs explain x.obs\n  vellum obs grep --select Cpu --to csv . x.obs"
)]
pub(crate) struct Obs {
    #[command(subcommand)]
    pub(crate) what: What,
}

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Entries whose name matches a regular expression ("." is every one).
    Grep {
        /// Look for this regular expression in names.
        #[arg(value_parser = pattern)]
        pattern: String,
        #[command(flatten)]
        choice: Choice,
        /// What to write.
        #[arg(long, value_name = "FORMAT", default_value = "lines")]
        to: Format,
        #[command(flatten)]
        input: Input,
    },
    /// Some observations of each series, by their place.
    ///
    /// All that belongs to an observation is cut with it. Summaries pass whole: their observations are gone.
    Cut {
        /// Places from 1, as in 1-200 or 5,300- or -10.
        #[arg(value_name = "RANGES", allow_hyphen_values = true)]
        ranges: Ranges,
        #[command(flatten)]
        choice: Choice,
        /// What to write.
        #[arg(long, value_name = "FORMAT", default_value = "lines")]
        to: Format,
        #[command(flatten)]
        input: Input,
    },
    /// Count, mean, smallest, largest, deviation and low quantile of each series.
    ///
    /// Times are an operation's: less the base, divided by the batch.
    Stat(obs_stat::Stat),
    /// Why outliers took longer: what they lost time to, and which disturbances come back.
    Explain(obs_explain::Explain),
}

/// What series are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines, as they are read.
    Lines,
    /// One JSON document, schema vellum.observations/1.
    Json,
    /// One CSV table, a row an observation.
    Csv,
}

/// Observations cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObsError {
    /// As lines.
    #[error(transparent)]
    Lines(#[from] WriteError),
    /// As JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// As CSV.
    #[error(transparent)]
    Csv(#[from] CsvError),
}

/// Does what was asked for.
pub(crate) fn obs(args: &Obs) -> Result<u8, Failure> {
    match &args.what {
        What::Grep { pattern, choice, to, input } => pass(input, &choice.filter(Some(pattern)), *to),
        What::Cut { ranges, choice, to, input } => pass(input, &choice.filter(None).cut(ranges.clone()), *to),
        What::Stat(stat) => obs_stat::stat(stat),
        What::Explain(explain) => obs_explain::obs_explain(explain),
    }
}

/// Writes what passes the filter.
fn pass(input: &Input, filter: &Filter, to: Format) -> Result<u8, Failure> {
    let written = stdout::write_with(|out| match to {
        Format::Lines => {
            let mut written = 0usize;
            input.each(|entry| {
                for entry in filter.apply(entry) {
                    write_entry(out, &entry).map_err(ObsError::Lines)?;
                    written += 1;
                }
                Ok(())
            })?;
            Ok(written)
        }
        Format::Json | Format::Csv => {
            let series = all_series(input, filter)?;
            if to == Format::Json {
                json::write(out, &series).map_err(ObsError::Json)?;
            } else {
                csv::write(out, &series).map_err(ObsError::Csv)?;
            }
            Ok(series.len())
        }
    })?;
    Ok(status(written))
}

/// 0 if something was written, also if its reader had enough of it.
pub(crate) fn status(written: Option<usize>) -> u8 {
    if written == Some(0) { NOTHING } else { 0 }
}

/// All series that pass, and a word about summaries, which have no place beside them.
fn all_series(input: &Input, filter: &Filter) -> Result<Vec<Series>, Failure> {
    let (mut all, mut summaries) = (Vec::new(), 0usize);
    input.each(|entry| {
        for entry in filter.apply(entry) {
            match entry {
                Entry::Series(series) => all.push(series),
                Entry::Summary(_) => summaries += 1,
            }
        }
        Ok(())
    })?;
    if summaries > 0 {
        let _ = writeln!(
            std::io::stderr(),
            "vellum: summaries left out, as they hold no observations: {summaries}; lines (--to lines) keep them"
        );
    }
    Ok(all)
}

const _: () = assert!(NOTHING != FAILED);
