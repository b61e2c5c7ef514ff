//! Programs written for libgc, unmodified, with libgc's library and with Vellum's in its place.
//!
//! The same executable runs on both libraries and allocates by `GC_MALLOC`, as most such programs do. The
//! tables show time, memory and the number of collections: a collector that uses less of its memory
//! collects more often, which takes time.

use super::{CPU, PEAK, name};
use crate::suite::table;
use crate::target::{Against, twin};
use crate::{Arm, Cell, Line, Table, Target, Unit};
use std::path::Path;
use vellum_papers::smith::{Build, Collector, Workshop, with_library};

/// The cells: their names, their programs, and the programs' arguments.
pub(super) const CELLS: [(&str, &str, &[&str]); 2] =
    [("drop-in-trees", "trees", &[]), ("drop-in-lists", "mergesort", &["items=100000", "sorts=20"])];
/// The arm of Vellum's library.
const OURS: &str = "drop-in";
/// Bounds of each figure, over libgc's.
const AT_MOST: [(&str, &str, Unit, f64); 3] = [
    (CPU, "CPU time", Unit::Millis, 0.65),
    ("collections", "collections", Unit::Count, 1.0),
    (PEAK, "peak memory", Unit::Mebibytes, 1.0),
];

/// A cell with an arm for each library found here. `library` is Vellum's `libvellum.so`; its `libgc.so.1`
/// lies in a folder beside it.
pub(super) fn prepare(
    cell: &str,
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
    super::cell(cell, arms, rounds)
}

pub(super) fn tables() -> Vec<Table> {
    let of = |(metric, called, unit, most): (&'static str, &str, Unit, f64)| {
        let target = Target::at_most(most, Against::Arm(Collector::Libgc.name())).of(OURS);
        let line = |(cell, ..): &(&str, _, _)| Line {
            label: (*cell).to_owned(),
            cell: name(cell),
            target: Some(target.clone()),
        };
        let lines = CELLS.iter().map(line).collect();
        table(&format!("Programs written for libgc, on either library: {called}"), metric, unit, lines)
    };
    AT_MOST.map(of).to_vec()
}
