//! Marking by several threads: what a whole collection takes then, by the wall clock and in CPU time.
//!
//! The program is the one that collects 128 MB of a live tree ten times. Its arms are each collector with one marker and with two. Wall time
//! means something only while a second processor is free; that it costs CPU time is true anyhow.

use super::{cell, name};
use crate::timing::Grid;
use crate::{Arm, Cell, Sheet};
use vellum_measure::{Interval, median, paired_ratio};
use vellum_papers::smith::{Build, Collector, Plan, Workshop};

/// The cell.
pub(super) const CELL: &str = "parallel";
const CLIENT: &str = "mark";
const ONE: &str = "markers=1";
const TWO: &str = "markers=2";
/// An arm's label, whether it is libgc's, and its words. The first of each collector is what the others are divided by.
const ARMS: [(&str, bool, &str); 5] = [
    ("one marker", false, ONE),
    ("one marker, again", false, ONE),
    ("two markers", false, TWO),
    ("libgc, one marker", true, ONE),
    ("libgc, two markers", true, TWO),
];
const CPU: &str = "live_object_ns";
const WALL: &str = "live_object_wall_ns";
/// Drawings for an interval.
const RESAMPLES: usize = 1000;

/// The cell with its arms, as far as its collectors are here.
pub(super) fn prepare(workshop: &mut Workshop, here: &[Collector], scale: &str, rounds: usize) -> Cell {
    let arms: Vec<Arm> = ARMS
        .iter()
        .filter_map(|(label, is_libgc, words)| {
            let collector = if *is_libgc { Collector::Libgc } else { Collector::Vellum(Plan::MarkSweep) };
            let is_here = here.contains(&collector);
            is_here.then(|| workshop.arm(label, CLIENT, collector, Build::Plain, &[words, scale])).flatten()
        })
        .collect();
    cell(CELL, arms, rounds)
}

/// What came of it, if it was run: a table.
pub(super) fn found(sheets: &[Sheet], seed: u64) -> Option<Grid> {
    let sheet = sheets.iter().find(|sheet| sheet.cell == name(CELL))?;
    let ratio = |arm: &str, over: &str, metric: &str| -> Option<Interval> {
        let pairs = sheet.by_round(arm, metric).into_iter().zip(sheet.by_round(over, metric));
        let pairs: Vec<(f64, f64)> = pairs.filter_map(|(a, b)| Some((a?, b?))).collect();
        paired_ratio(&pairs, RESAMPLES, seed)
    };
    let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    let head =
        ["128 MB, a tree", "CPU ns a live object", "/ one marker", "wall ns a live object", "/ one marker"];
    let mut grid = Grid::new("Marking by several threads: medians over the rounds", &head);
    for (arm, is_libgc, _) in ARMS {
        let first = ARMS.iter().find(|(_, its, _)| *its == is_libgc).map_or(arm, |(first, ..)| first);
        let mut row = vec![arm.to_owned()];
        for metric in [CPU, WALL] {
            row.push(figure(median(&sheet.values(arm, metric))));
            row.push(figure(ratio(arm, first, metric).map(|ratio| ratio.estimate)));
        }
        grid.push(row);
    }
    Some(grid)
}
