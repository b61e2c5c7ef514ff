//! One program under each collector in several ways of collecting: the arms of such a cell, and their ratios
//! by rounds.

use super::{cell, name};
use crate::{Arm, Cell, Sheet};
use vellum_measure::{Interval, paired_ratio};
use vellum_papers::smith::{Build, Collector, Plan, Workshop};

/// Drawings for an interval.
const RESAMPLES: usize = 1000;

/// An arm.
pub(super) struct Way {
    pub label: &'static str,
    pub is_libgc: bool,
    /// The words that the program gets.
    pub words: &'static str,
}

/// A way of Vellum's mark-sweep collector.
pub(super) const fn ours(label: &'static str, words: &'static str) -> Way {
    Way { label, is_libgc: false, words }
}

/// A way of libgc.
pub(super) const fn libgc(label: &'static str, words: &'static str) -> Way {
    Way { label, is_libgc: true, words }
}

/// The cell of `client` with its arms, as far as their collectors are here.
pub(super) fn prepare(
    name: &str,
    client: &str,
    ways: &[Way],
    workshop: &mut Workshop,
    here: &[Collector],
    scale: &str,
    rounds: usize,
) -> Cell {
    let arms: Vec<Arm> = ways
        .iter()
        .filter_map(|way| {
            let collector = if way.is_libgc { Collector::Libgc } else { Collector::Vellum(Plan::MarkSweep) };
            let is_here = here.contains(&collector);
            is_here
                .then(|| workshop.arm(way.label, client, collector, Build::Plain, &[way.words, scale]))
                .flatten()
        })
        .collect();
    cell(name, arms, rounds)
}

/// The sheet of the cell, if it was run.
pub(super) fn sheet<'s>(sheets: &'s [Sheet], cell: &str) -> Option<&'s Sheet> {
    sheets.iter().find(|sheet| sheet.cell == name(cell))
}

/// `metric` under `arm` over that under `over`, round by round.
pub(super) fn ratio(sheet: &Sheet, arm: &str, over: &str, metric: &str, seed: u64) -> Option<Interval> {
    let pairs = sheet.by_round(arm, metric).into_iter().zip(sheet.by_round(over, metric));
    let pairs: Vec<(f64, f64)> = pairs.filter_map(|(a, b)| Some((a?, b?))).collect();
    paired_ratio(&pairs, RESAMPLES, seed)
}
