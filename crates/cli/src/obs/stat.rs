//! `vellum obs stat`: the figures of each series, for people as a table, for programs as lines or JSON.
//!
//! ```text
//! BASE:summary:Sample::Time:us 1000 486 402 9053 499         --to lines: the source's own
//!
//! name      n    mean     min      max     std     p10       --to table: scaled, on terminals
//! BASE  1,000  486 µs  402 µs  9.05 ms  499 µs  410 µs
//! ```
//!
//! Layers of outliers can be removed first; then `n` shows the number left, of all. A summary is shown as it
//! is: it holds no observations, and so no low quantile.

use super::status::status;
use crate::failure::Failure;
use crate::observations::{Choice, Input, pattern};
use crate::screen;
use clap::{ArgAction, ValueEnum};
use rustix::termios::isatty;
use serde::Serialize;
use std::io::Write;
use vellum_measure::line::{Entry, write_summary};
use vellum_measure::{Layers, Summary, Unit, quantile};
use vellum_report::{OutputError, Style, Table, stdout};

const SCHEMA: &str = "vellum.obs.stat/1";
/// The quantile that stands for what an operation takes when nothing disturbs it.
const LOW: f64 = 0.1;

/// What to show figures of.
#[derive(Debug, clap::Args)]
pub(crate) struct Stat {
    /// Remove a layer of outliers first (beyond mean ± 2 standard deviations); repeat for more layers.
    #[arg(short, long, action = ArgAction::Count)]
    outliers: u8,

    /// Only entries whose name matches this regular expression.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    grep: Option<String>,

    #[command(flatten)]
    choice: Choice,

    /// The output format (default: a table on a terminal, else lines).
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,

    #[command(flatten)]
    input: Input,
}

/// What figures are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// Lines: NAME:summary:Sample:labels:Time:us n mean min max std.
    Lines,
    /// JSON, schema vellum.obs.stat/1.
    Json,
}

/// The figures of one entry.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    labels: Vec<String>,
    quantity: String,
    unit: Unit,
    n: u64,
    /// How many there were before layers were taken off.
    of: u64,
    mean: f64,
    min: f64,
    max: f64,
    std: f64,
    p10: Option<f64>,
    median: Option<f64>,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    layers: u8,
    rows: Vec<Row>,
}

/// Shows the figures.
pub(crate) fn stat(args: &Stat) -> Result<u8, Failure> {
    let on_terminal = if isatty(rustix::stdio::stdout()) { Format::Table } else { Format::Lines };
    let format = args.to.unwrap_or(on_terminal);
    let written = stdout::write_with::<_, Failure>(|out| {
        let (mut rows, mut written) = (Vec::new(), 0);
        each(args, |row, summary| {
            written += 1;
            match format {
                Format::Lines => write_summary(out, &summary).map_err(Failure::of)?,
                Format::Table | Format::Json => rows.push(row),
            }
            Ok(())
        })?;
        let text = match format {
            Format::Table if rows.is_empty() => String::new(),
            Format::Table => table(&rows).render("", screen::columns(), Style::of_stdout()),
            Format::Json => vellum_report::json(&Document { schema: SCHEMA, layers: args.outliers, rows }),
            Format::Lines => String::new(),
        };
        let failed = |source| Failure::Output(OutputError { path: "standard output".into(), source });
        out.write_all(text.as_bytes()).map_err(failed)?;
        Ok(written)
    })?;
    if written == Some(0) {
        say!("vellum: no statistics: the input has no series with values");
    }
    Ok(status(written))
}

fn each(args: &Stat, mut take: impl FnMut(Row, Summary) -> Result<(), Failure>) -> Result<(), Failure> {
    let filter = args.choice.filter(args.grep.as_deref());
    args.input.each(|entry| {
        for entry in filter.apply(entry) {
            if let Some((row, summary)) = figures(entry, args.outliers) {
                take(row, summary)?;
            }
        }
        Ok(())
    })
}

/// The figures of an entry, `None` of a series without values.
fn figures(entry: Entry, layers: u8) -> Option<(Row, Summary)> {
    let (summary, of, kept) = match entry {
        Entry::Summary(summary) => {
            let of = summary.stat.n;
            (summary, of, Vec::new())
        }
        Entry::Series(series) => {
            let walls = series.walls();
            let kept = Layers::peel(&walls, layers).keep(&walls);
            let stat = vellum_measure::Stat::of(&kept)?;
            (Summary { stat, ..Summary::of(&series)? }, walls.len() as u64, kept)
        }
    };
    let row = Row {
        name: summary.name.clone(),
        labels: summary.labels.clone(),
        quantity: summary.quantity.clone(),
        unit: summary.unit.clone(),
        n: summary.stat.n,
        of,
        mean: summary.stat.mean,
        min: summary.stat.min,
        max: summary.stat.max,
        std: summary.stat.std,
        p10: quantile(&kept, LOW),
        median: quantile(&kept, 0.5),
    };
    Some((row, summary))
}

fn table(rows: &[Row]) -> Table {
    let mixed = rows.iter().any(|row| row.quantity != rows[0].quantity);
    let labelled = rows.iter().any(|row| !row.labels.is_empty());
    let mut heads = vec!["name"];
    heads.extend(labelled.then_some("labels"));
    heads.extend(mixed.then_some("quantity"));
    let words = heads.len();
    heads.extend(["n", "mean", "min", "max", "std", "p10"]);
    let mut table = Table::plain(&heads, words);
    for row in rows {
        let count = |n: u64| Unit::Count.scaled(n as f64);
        let scaled = |value: f64| row.unit.scaled(value);
        let mut cells = vec![row.name.clone()];
        cells.extend(labelled.then(|| row.labels.join(" ")));
        cells.extend(mixed.then(|| row.quantity.clone()));
        cells.push(if row.n == row.of {
            count(row.n)
        } else {
            format!("{} of {}", count(row.n), count(row.of))
        });
        cells.extend([row.mean, row.min, row.max, row.std].map(scaled));
        cells.push(row.p10.map_or_else(|| "-".to_owned(), scaled));
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Series;

    fn series(values: impl IntoIterator<Item = f64>) -> Entry {
        Entry::Series(Series::plain("X", "Time", Unit::Microseconds, values))
    }

    #[test]
    fn layers_come_off_before_the_figures() {
        let values = || std::iter::repeat_n(5.0, 99).chain([1000.0]);
        let (all, _) = figures(series(values()), 0).unwrap();
        assert_eq!((all.n, all.of, all.max), (100, 100, 1000.0));
        let (kept, summary) = figures(series(values()), 1).unwrap();
        assert_eq!((kept.n, kept.of, kept.max, kept.p10), (99, 100, 5.0, Some(5.0)));
        assert_eq!(summary.stat.n, 99);
        assert!(figures(series([]), 0).is_none());
    }
}
