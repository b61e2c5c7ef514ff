//! Collections in slices: the longest pause, and the extra CPU time.
//!
//! The program builds binary trees beside 64 MiB that stay live. Its arms are each collector in whole
//! collections and in slices of a millisecond. A pause is the CPU time that one allocation's slow path took
//! in its own thread; wall time would include other programs. All arms pay alike for reading that clock.

use super::ways::{self, Way, libgc, ours};
use super::{CPU, PEAK, name};
use crate::suite::table;
use crate::{Against, Cell, Line, Table, Target, Unit};
use vellum_papers::smith::{Collector, Workshop};

pub(super) const CELL: &str = "slices";
const CLIENT: &str = "trees";
const AT_ONE_GO: &str = "slice=0";
const IN_SLICES: &str = "slice=1000";
const WAYS: [Way; 5] = [
    ours("at one go", AT_ONE_GO),
    ours("at one go'", AT_ONE_GO),
    ours("in slices", IN_SLICES),
    libgc("libgc", AT_ONE_GO),
    libgc("libgc incremental", IN_SLICES),
];
/// Bound of the longest pause in slices, in CPU time.
const PAUSE_MAX_NS: f64 = 2e6;
/// Bound of the time in slices over the time of whole collections.
const COST_MAX: f64 = 1.1;

/// The cell, with an arm for each collector found here.
pub(super) fn prepare(workshop: &mut Workshop, here: &[Collector], scale: &str, rounds: usize) -> Cell {
    ways::prepare(CELL, CLIENT, &WAYS, workshop, here, scale, rounds)
}

pub(super) fn tables() -> Vec<Table> {
    let sliced = WAYS[2].label;
    let of = |title: &str, metric, unit, target| {
        let line = Line { label: "64 MiB alive".to_owned(), cell: name(CELL), target };
        table(&format!("Collections in slices: {title}"), metric, unit, vec![line])
    };
    let pause = Target::at_most(PAUSE_MAX_NS, Against::Itself).of(sliced);
    let cost = Target::at_most(COST_MAX, Against::Arm(WAYS[0].label)).of(sliced);
    vec![
        of("longest pause, CPU time", "pause_cpu_max_ns", Unit::Millis, Some(pause)),
        of("pauses over 2 ms", "pauses_long", Unit::Count, None),
        of("CPU time", CPU, Unit::Millis, Some(cost)),
        of("peak memory", PEAK, Unit::Mebibytes, None),
    ]
}
