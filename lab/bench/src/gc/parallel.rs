//! Marking by several threads: what a whole collection takes then, by the wall clock and in CPU time.
//!
//! The program is the one that collects 128 MB of a live tree ten times. Its arms are each collector with one
//! marker and with two. Wall time means something only while a second processor is free; that it costs CPU
//! time is true anyhow.

use super::ways::{self, Way, libgc, ours, ratio};
use crate::{Cell, Sheet};
use vellum_measure::median;
use vellum_papers::smith::{Collector, Workshop};
use vellum_report::Table;
use vellum_report::units::fixed;

/// The cell.
pub(super) const CELL: &str = "parallel";
const CLIENT: &str = "mark";
const ONE: &str = "markers=1";
const TWO: &str = "markers=2";
/// The first of each collector is what the others are divided by.
const WAYS: [Way; 5] = [
    ours("one marker", ONE),
    ours("one marker, again", ONE),
    ours("two markers", TWO),
    libgc("libgc, one marker", ONE),
    libgc("libgc, two markers", TWO),
];
const CPU: &str = "live_object_ns";
const WALL: &str = "live_object_wall_ns";
/// The cell with its arms, as far as its collectors are here.
pub(super) fn prepare(workshop: &mut Workshop, here: &[Collector], scale: &str, rounds: usize) -> Cell {
    ways::prepare(CELL, CLIENT, &WAYS, workshop, here, scale, rounds)
}

/// What came of it, if it was run: a table.
pub(super) fn found(sheets: &[Sheet], seed: u64) -> Option<Table> {
    let sheet = ways::sheet(sheets, CELL)?;
    let head =
        ["128 MB, a tree", "CPU ns a live object", "/ one marker", "wall ns a live object", "/ one marker"];
    let mut grid = Table::plain(&head, 1).titled("Marking by several threads: medians over the rounds");
    for Way { label, is_libgc, .. } in WAYS {
        let first = WAYS.iter().find(|way| way.is_libgc == is_libgc).map_or(label, |first| first.label);
        let mut row = vec![label.to_owned()];
        for metric in [CPU, WALL] {
            row.push(fixed(median(&sheet.values(label, metric)), 2));
            row.push(fixed(ratio(sheet, label, first, metric, seed).map(|ratio| ratio.estimate), 2));
        }
        grid.row(row);
    }
    Some(grid)
}
