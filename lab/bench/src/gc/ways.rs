//! The arms of a cell that runs one program under each collector in several ways of collecting.

use super::cell;
use crate::{Arm, Cell};
use vellum_papers::smith::{Build, Collector, Plan, Workshop};

pub(super) struct Way {
    pub label: &'static str,
    pub is_libgc: bool,
    /// The program's arguments.
    pub words: &'static str,
}

/// One way to collect with Vellum's mark-sweep collector.
pub(super) const fn ours(label: &'static str, words: &'static str) -> Way {
    Way { label, is_libgc: false, words }
}

pub(super) const fn libgc(label: &'static str, words: &'static str) -> Way {
    Way { label, is_libgc: true, words }
}

/// The cell of `client`, with an arm for each collector found here.
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
