//! Cells that compare ways to collect: in slices or at one go, and by one or several threads. Each cell is
//! one program, run with Vellum's mark-sweep collector and with libgc.
//!
//! - *Slices*: binary trees are built beside 64 MiB that stay live. A collection runs at one go or in
//!   slices of 1 ms. A pause is the CPU time that one allocation's slow path took in its own thread; wall
//!   time would include other programs. Reading that clock costs the same in all runs.
//! - *Parallel*: 128 MB of a live tree are collected ten times, by one marking thread and by two. Wall
//!   times are valid only while a second processor is free; CPU times always are.

use super::{CPU, LIVE_OBJECT, PEAK, cell, name};
use crate::suite::table;
use crate::target::twin;
use crate::{Against, Cell, Line, Table, Target, Unit};
use vellum_papers::smith::{Build, Collector, Plan, Workshop};

/// A cell: its name, its program, and the ways of collecting. Each way has the label of its arm, whether it
/// is libgc's, and the program's argument. Vellum's first way runs twice, as the control.
pub(super) struct Ways {
    pub(super) cell: &'static str,
    client: &'static str,
    ways: [(&'static str, bool, &'static str); 4],
}

pub(super) const SLICES: Ways = Ways {
    cell: "slices",
    client: "trees",
    ways: [
        ("at one go", false, "slice=0"),
        ("in slices", false, "slice=1000"),
        ("libgc", true, "slice=0"),
        ("libgc incremental", true, "slice=1000"),
    ],
};
pub(super) const PARALLEL: Ways = Ways {
    cell: "parallel",
    client: "mark",
    ways: [
        ("one marker", false, "markers=1"),
        ("two markers", false, "markers=2"),
        ("libgc, one marker", true, "markers=1"),
        ("libgc, two markers", true, "markers=2"),
    ],
};
/// Bound of the longest pause in slices, in CPU time.
const PAUSE_MAX_NS: f64 = 2e6;
/// Bound of the time in slices over the time of whole collections.
const COST_MAX: f64 = 1.1;

impl Ways {
    /// The cell, with an arm for each collector found here.
    pub(super) fn prepare(
        &self,
        workshop: &mut Workshop,
        here: &[Collector],
        scale: &str,
        rounds: usize,
    ) -> Cell {
        let (first, _, words) = self.ways[0];
        let ways = self.ways.iter().map(|(label, libgc, words)| ((*label).to_owned(), *libgc, *words));
        let arms = ways.chain([(twin(first), false, words)]).filter_map(|(label, is_libgc, words)| {
            let collector = if is_libgc { Collector::Libgc } else { Collector::Vellum(Plan::MarkSweep) };
            let is_here = here.contains(&collector);
            is_here
                .then(|| workshop.arm(&label, self.client, collector, Build::Plain, &[words, scale]))
                .flatten()
        });
        cell(self.cell, arms.collect(), rounds)
    }

    fn table(
        &self,
        title: &str,
        label: &str,
        (metric, unit): (&'static str, Unit),
        target: Option<Target>,
    ) -> Table {
        let line = Line { label: label.to_owned(), cell: name(self.cell), target };
        table(title, metric, unit, vec![line])
    }
}

pub(super) fn tables() -> Vec<Table> {
    let [(whole, ..), (sliced, ..), ..] = SLICES.ways;
    let slices = |title: &str, metric, target| {
        SLICES.table(&format!("Collections in slices: {title}"), "64 MiB alive", metric, target)
    };
    let parallel = |title: &str, metric| {
        let title = format!("Marking by several threads: {title} a live object");
        PARALLEL.table(&title, "128 MB, a tree", (metric, Unit::Nanos), None)
    };
    let pause = Target::at_most(PAUSE_MAX_NS, Against::Itself).of(sliced);
    let cost = Target::at_most(COST_MAX, Against::Arm(whole)).of(sliced);
    vec![
        slices("longest pause, CPU time", ("pause_cpu_max_ns", Unit::Millis), Some(pause)),
        slices("pauses over 2 ms", ("pauses_long", Unit::Count), None),
        slices("CPU time", (CPU, Unit::Millis), Some(cost)),
        slices("peak memory", (PEAK, Unit::Mebibytes), None),
        parallel("CPU time", LIVE_OBJECT),
        parallel("wall time", "live_object_wall_ns"),
    ]
}
