//! Marking by several threads: the wall time and the CPU time of whole collections.
//!
//! The program collects 128 MB of a live tree ten times. Its arms are each collector with one marker and
//! with two. Wall times are valid only while a second processor is free; CPU times always are.

use super::ways::{self, Way, libgc, ours};
use super::{LIVE_OBJECT, name};
use crate::suite::table;
use crate::{Cell, Line, Table, Unit};
use vellum_papers::smith::{Collector, Workshop};

pub(super) const CELL: &str = "parallel";
const CLIENT: &str = "mark";
const ONE: &str = "markers=1";
const TWO: &str = "markers=2";
const WAYS: [Way; 5] = [
    ours("one marker", ONE),
    ours("one marker'", ONE),
    ours("two markers", TWO),
    libgc("libgc, one marker", ONE),
    libgc("libgc, two markers", TWO),
];
/// The cell, with an arm for each collector found here.
pub(super) fn prepare(workshop: &mut Workshop, here: &[Collector], scale: &str, rounds: usize) -> Cell {
    ways::prepare(CELL, CLIENT, &WAYS, workshop, here, scale, rounds)
}

pub(super) fn tables() -> Vec<Table> {
    let of = |title: &str, metric| {
        let line = Line { label: "128 MB, a tree".to_owned(), cell: name(CELL), target: None };
        table(&format!("Marking by several threads: {title} a live object"), metric, Unit::Nanos, vec![line])
    };
    vec![of("CPU time", LIVE_OBJECT), of("wall time", "live_object_wall_ns")]
}
