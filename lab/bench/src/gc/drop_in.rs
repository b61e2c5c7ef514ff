//! Programs written for libgc, as they are, with libgc's library and with Vellum's in its place.
//!
//! The same executable runs on either, and allocates by `GC_MALLOC` as most such programs do. What counts
//! beside time and memory is how often each collects: a heap that uses less of the memory it has taken
//! collects more often, and pays for that in time.

use super::ways;
use crate::target::twin;
use crate::{Arm, Cell, Sheet};
use std::path::Path;
use vellum_measure::{Bound, Goal, Verdict, median};
use vellum_papers::smith::{Build, Collector, Workshop, with_library};
use vellum_report::Table;
use vellum_report::units::fixed;

/// The cells: their names, their programs, and the words these get.
pub(super) const CELLS: [(&str, &str, &[&str]); 2] =
    [("drop-in-trees", "trees", &[]), ("drop-in-lists", "mergesort", &["items=100000", "sorts=20"])];
/// The arm of Vellum's library.
const OURS: &str = "drop-in";
const CPU: &str = "cpu_ns";
const PEAK: &str = "peak_bytes";
const COLLECTIONS: &str = "collections";
/// The most of libgc's that each figure may be.
const AT_MOST: [(&str, &str, f64); 3] =
    [(CPU, "CPU time", 0.65), (COLLECTIONS, "collections", 1.0), (PEAK, "peak memory", 1.0)];

/// A cell with its arms, as far as they are here. `library` is Vellum's; that for programs of libgc's lies in
/// a folder beside it.
pub(super) fn prepare(
    name: &str,
    client: &str,
    words: &[&str],
    workshop: &mut Workshop,
    library: &Path,
    rounds: usize,
) -> Cell {
    let folder = library.with_file_name("libgc");
    let arm = |label: &str, workshop: &mut Workshop| -> Option<Arm> {
        workshop.arm(label, client, Collector::Libgc, Build::Call, words)
    };
    let libgc = Collector::Libgc.name();
    let mut arms: Vec<Arm> = Vec::new();
    for label in [libgc.to_owned(), twin(libgc)] {
        arms.extend(arm(&label, workshop));
    }
    for label in [OURS.to_owned(), twin(OURS)] {
        arms.extend(arm(&label, workshop).and_then(|arm| with_library(arm, &folder).ok()));
    }
    super::cell(name, arms, rounds)
}

/// What came of those that were run: a table and goals.
pub(super) fn found(sheets: &[Sheet], seed: u64) -> Option<(Table, Vec<Goal>)> {
    let libgc = Collector::Libgc.name();
    let head = ["", "CPU ms", "drop-in", "/ libgc", "A/A", "collections", "drop-in", "peak MiB", "drop-in"];
    let mut grid = Table::plain(&head, 1).titled("Programs written for libgc, on either library: medians");
    let mut goals = Vec::new();
    for (cell, ..) in CELLS {
        let Some(sheet) = ways::sheet(sheets, cell) else { continue };
        let middle = |arm: &str, metric: &str, unit: f64, digits| {
            fixed(median(&sheet.values(arm, metric)).map(|value| value / unit), digits)
        };
        let ratio = |arm: &str, over: &str, metric: &str| ways::ratio(sheet, arm, over, metric, seed);
        let off = |arm: &str, metric: &str| Some(ratio(&twin(arm), arm, metric)?.estimate);
        grid.row(vec![
            cell.to_owned(),
            middle(libgc, CPU, 1e6, 0),
            middle(OURS, CPU, 1e6, 0),
            fixed(ratio(OURS, libgc, CPU).map(|found| found.estimate), 2),
            fixed(off(libgc, CPU), 2),
            middle(libgc, COLLECTIONS, 1.0, 0),
            middle(OURS, COLLECTIONS, 1.0, 0),
            middle(libgc, PEAK, 1048576.0, 1),
            middle(OURS, PEAK, 1048576.0, 1),
        ]);
        for (metric, called, most) in AT_MOST {
            let what = format!("{OURS} / libgc, {cell}, {called}");
            let bound = Bound::AtMost(most);
            goals.push(match ratio(OURS, libgc, metric) {
                Some(found) => {
                    let noise = [off(libgc, metric), off(OURS, metric)]
                        .into_iter()
                        .flatten()
                        .map(|off| off.ln().abs())
                        .reduce(f64::max);
                    let verdict = Verdict::of(bound, found.estimate, Some(found), noise);
                    Goal { what, unit: "", bound, found: Some(found.estimate), verdict }
                }
                None => Goal::of(what, "", bound, None),
            });
        }
    }
    (!goals.is_empty()).then_some((grid, goals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metrics, Run};

    #[test]
    fn collections_are_counted_beside_libgcs() {
        let run = |round, value: f64, collections: f64| {
            let mut metrics = Metrics::new();
            metrics.set(CPU, value);
            metrics.set(COLLECTIONS, collections);
            Run { round, place: 0, result: Ok(metrics) }
        };
        let arm = |label: &str, value: f64, collections: f64| {
            (label.to_owned(), (0..3).map(|round| run(round, value, collections)).collect())
        };
        let arms = [arm("libgc", 10.0, 50.0), arm(OURS, 5.0, 60.0)];
        let sheet = Sheet { cell: super::super::name(CELLS[0].0), arms: arms.into_iter().collect() };
        let (table, goals) = found(&[sheet], 1).expect("the cell was run");
        assert!(table.text().contains("0.50"), "{}", table.text());
        let verdicts: Vec<Verdict> = goals.iter().map(|goal| goal.verdict).collect();
        assert_eq!(verdicts, [Verdict::Met, Verdict::Missed, Verdict::NoData]);
        assert!(found(&[], 1).is_none());
    }
}
