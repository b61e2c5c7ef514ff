//! Collections in slices: how long the longest pause is, and what that costs.
//!
//! The program is the one with binary trees beside 64 MiB that stay. Its arms are each collector at one go
//! and in slices of a millisecond. A pause is what one allocation took beyond its inlined path, in CPU time
//! of the thread it happened to: wall time beyond that is other programs'. Looking at that clock costs time
//! of its own, in all arms alike.

use super::ways::{self, Way, libgc, ours};
use crate::{Cell, Sheet};
use vellum_measure::{Bound, Goal, Interval, Verdict, median};
use vellum_papers::smith::{Collector, Workshop};
use vellum_report::Table;
use vellum_report::units::fixed;

/// The cell.
pub(super) const CELL: &str = "slices";
const CLIENT: &str = "trees";
const AT_ONE_GO: &str = "slice=0";
const IN_SLICES: &str = "slice=1000";
const WAYS: [Way; 5] = [
    ours("at one go", AT_ONE_GO),
    ours("at one go, again", AT_ONE_GO),
    ours("in slices", IN_SLICES),
    libgc("libgc", AT_ONE_GO),
    libgc("libgc incremental", IN_SLICES),
];
const CPU: &str = "cpu_ns";
const PAUSE: &str = "pause_cpu_max_ns";
const LONG: &str = "pauses_long";
const PEAK: &str = "peak_bytes";
/// The longest pause in slices, milliseconds of CPU time.
const PAUSE_MAX_MS: f64 = 2.0;
/// Time in slices over time at one go.
const COST_MAX: f64 = 1.1;
/// The cell with its arms, as far as its collectors are here.
pub(super) fn prepare(workshop: &mut Workshop, here: &[Collector], scale: &str, rounds: usize) -> Cell {
    ways::prepare(CELL, CLIENT, &WAYS, workshop, here, scale, rounds)
}

/// What came of it, if it was run: a table and goals.
pub(super) fn found(sheets: &[Sheet], seed: u64) -> Option<(Table, Vec<Goal>)> {
    let sheet = ways::sheet(sheets, CELL)?;
    let ratio = |arm: &str| -> Option<Interval> { ways::ratio(sheet, arm, WAYS[0].label, CPU, seed) };
    let head =
        ["64 MiB alive", "longest pause, CPU ms", "pauses over 2 ms", "CPU ms", "/ at one go", "peak MiB"];
    let mut grid = Table::plain(&head, 1).titled("Collections in slices: medians over the rounds");
    for Way { label: arm, .. } in WAYS {
        let middle = |metric: &str, unit: f64| median(&sheet.values(arm, metric)).map(|value| value / unit);
        grid.row(vec![
            arm.to_owned(),
            fixed(middle(PAUSE, 1e6), 2),
            fixed(middle(LONG, 1.0), 2),
            fixed(middle(CPU, 1e6), 2),
            fixed(ratio(arm).map(|ratio| ratio.estimate), 2),
            fixed(middle(PEAK, 1048576.0), 2),
        ]);
    }
    let sliced = WAYS[2].label;
    let pause = median(&sheet.values(sliced, PAUSE)).map(|ns| ns / 1e6);
    let cost = ratio(sliced);
    let noise = ratio(WAYS[1].label).map(|ratio| ratio.estimate.ln().abs());
    let bound = Bound::AtMost(COST_MAX);
    let what = "mark_sweep in slices / at one go, CPU time".to_owned();
    let costs = match cost {
        Some(found) => {
            let verdict = Verdict::of(bound, found.estimate, Some(found), noise);
            Goal { what, unit: "", bound, found: Some(found.estimate), verdict }
        }
        None => Goal::of(what, "", bound, None),
    };
    let pauses =
        Goal::of("mark_sweep in slices, longest pause", " ms of CPU", Bound::AtMost(PAUSE_MAX_MS), pause);
    Some((grid, vec![pauses, costs]))
}
