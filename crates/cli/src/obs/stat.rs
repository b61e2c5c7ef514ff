//! `vellum obs stat`: the statistics of each series, as a table for people, or as lines or JSON for programs.
//!
//! ```text
//! BASE:summary:Sample::Time:us 1000 486 402 9053 499         --to lines: the format of Bates 1999
//!
//! name      n    mean     min      max     std     p10       --to table: in scaled units
//! BASE  1,000  486 µs  402 µs  9.05 ms  499 µs  410 µs
//! ```
//!
//! `-o` first removes a layer of outliers (beyond mean ± 2 standard deviations): `n` is then "990 of 1,000".
//! A summary in the input is shown unchanged. It has no observations, and so no `p10` (10 % quantile).

use super::status;
use crate::failure::Failure;
use crate::observations::{Input, Named};
use crate::screen;
use clap::{ArgAction, ValueEnum};
use rustix::termios::isatty;
use serde_json::{Value, json};
use std::io::Write;
use vellum_measure::line::{Entry, write_summary};
use vellum_measure::{Layers, Summary, Unit, quantile};
use vellum_report::{Style, Table, stdout};

const SCHEMA: &str = "vellum.obs.stat/1";
/// The quantile used as the undisturbed time of an operation.
const LOW: f64 = 0.1;

/// The options of `vellum obs stat`.
#[derive(Debug, clap::Args)]
pub(crate) struct Stat {
    /// Remove a layer of outliers first (beyond mean ± 2 standard deviations); repeat for more layers.
    #[arg(short, long, action = ArgAction::Count)]
    outliers: u8,

    #[command(flatten)]
    named: Named,

    /// The output format (default: a table on a terminal, else lines).
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,

    #[command(flatten)]
    input: Input,
}

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
#[derive(Debug)]
struct Row {
    summary: Summary,
    /// The number of observations before layers were removed.
    of: u64,
    p10: Option<f64>,
    median: Option<f64>,
}

impl Row {
    fn document(&self) -> Value {
        let Row { summary: Summary { name, labels, quantity, unit, stat }, of, p10, median } = self;
        json!({
            "name": name, "labels": labels, "quantity": quantity, "unit": unit, "n": stat.n, "of": of,
            "mean": stat.mean, "min": stat.min, "max": stat.max, "std": stat.std, "p10": p10, "median": median,
        })
    }
}

pub(crate) fn stat(args: &Stat) -> Result<u8, Failure> {
    let on_terminal = if isatty(rustix::stdio::stdout()) { Format::Table } else { Format::Lines };
    let format = args.to.unwrap_or(on_terminal);
    let written = stdout::write_with::<_, Failure>(|out| {
        let (mut rows, mut written) = (Vec::new(), 0);
        each(args, |row| {
            written += 1;
            match format {
                Format::Lines => write_summary(out, &row.summary)?,
                Format::Table | Format::Json => rows.push(row),
            }
            Ok(())
        })?;
        let text = match format {
            Format::Table if rows.is_empty() => String::new(),
            Format::Table => table(&rows).render("", screen::columns(), Style::of_stdout()),
            Format::Json => {
                let rows: Vec<Value> = rows.iter().map(Row::document).collect();
                vellum_report::json(&json!({"schema": SCHEMA, "layers": args.outliers, "rows": rows}))?
            }
            Format::Lines => String::new(),
        };
        out.write_all(text.as_bytes()).map_err(|error| Failure::output("standard output", error))?;
        Ok(written)
    })?;
    if written == Some(0) {
        say!("vellum: no statistics: the input has no series with values");
    }
    Ok(status(written))
}

fn each(args: &Stat, mut take: impl FnMut(Row) -> Result<(), Failure>) -> Result<(), Failure> {
    let filter = args.named.filter();
    args.input.each(|entry| {
        for entry in filter.apply(entry) {
            figures(entry, args.outliers).map_or(Ok(()), &mut take)?;
        }
        Ok(())
    })
}

/// The figures of an entry; `None` for a series without values.
fn figures(entry: Entry, layers: u8) -> Option<Row> {
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
    Some(Row { summary, of, p10: quantile(&kept, LOW), median: quantile(&kept, 0.5) })
}

fn table(rows: &[Row]) -> Table {
    let mixed = rows.iter().any(|row| row.summary.quantity != rows[0].summary.quantity);
    let labelled = rows.iter().any(|row| !row.summary.labels.is_empty());
    let mut heads = vec!["name"];
    heads.extend(labelled.then_some("labels"));
    heads.extend(mixed.then_some("quantity"));
    let words = heads.len();
    heads.extend(["n", "mean", "min", "max", "std", "p10"]);
    let mut table = Table::plain(&heads, words);
    for Row { summary: Summary { name, labels, quantity, unit, stat }, of, p10, .. } in rows {
        let count = |n: u64| Unit::Count.scaled(n as f64);
        let scaled = |value: f64| unit.scaled(value);
        let mut cells = vec![name.clone()];
        cells.extend(labelled.then(|| labels.join(" ")));
        cells.extend(mixed.then(|| quantity.clone()));
        cells.push(match stat.n == *of {
            true => count(stat.n),
            false => format!("{} of {}", count(stat.n), count(*of)),
        });
        cells.extend([stat.mean, stat.min, stat.max, stat.std].map(scaled));
        cells.push(p10.map_or_else(|| "-".to_owned(), scaled));
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
    fn outlier_layers_are_removed_before_statistics() {
        let values = || std::iter::repeat_n(5.0, 99).chain([1000.0]);
        let of = |layers| {
            let row = figures(series(values()), layers).unwrap();
            (row.summary.stat.n, row.of, row.summary.stat.max, row.p10)
        };
        assert_eq!(of(0), (100, 100, 1000.0, Some(5.0)));
        assert_eq!(of(1), (99, 100, 5.0, Some(5.0)));
        assert!(figures(series([]), 0).is_none());
    }
}
