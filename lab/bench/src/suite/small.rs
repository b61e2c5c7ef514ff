//! (e) Small programs.

use super::batch::leaner;
use super::{NO_SLOWER, Plan, Section, large_peak, line, table};
use crate::target::{Against, Target};
use crate::{Cell, Unit, peer};

/// A program: its name, the workload, and on how many threads (none: all processors).
const PROGRAMS: [(&str, &str, Option<usize>); 23] = [
    ("cfrac", "cfrac", Some(1)),
    ("espresso", "espresso", Some(1)),
    ("barnes", "barnes", Some(1)),
    ("alloc-test-1", "alloc-test", Some(1)),
    ("alloc-test-N", "alloc-test", None),
    ("larson-N", "larson", None),
    ("xmalloc-N", "xmalloc", None),
    ("sh6-1", "sh6", Some(1)),
    ("sh6-N", "sh6", None),
    ("sh8-N", "sh8", None),
    ("cache-scratch-N", "cache-scratch", None),
    ("cache-thrash-N", "cache-thrash", None),
    ("mstress-N", "mstress", None),
    ("rptest-1", "rptest", Some(1)),
    ("rptest-N", "rptest", None),
    ("glibc-simple", "glibc-simple", Some(1)),
    ("glibc-thread-1", "glibc-thread", Some(1)),
    ("glibc-thread-N", "glibc-thread", None),
    (MALLOC_LARGE, "malloc-large", Some(1)),
    ("redis", "redis", Some(1)),
    ("mleak-N", "mleak", None),
    ("lua", "lua", Some(1)),
    ("python", "python", Some(1)),
];

/// The one whose blocks are large, with the memory target of such programs.
const MALLOC_LARGE: &str = "malloc-large";

pub(super) fn section(plan: &Plan) -> Section {
    // Twenty buffers must live before any is replaced: that one cannot be cut as short.
    let permille = |name: &str| plan.pick(1000, if name == MALLOC_LARGE { 300 } else { 70 });
    let cells: Vec<Cell> = PROGRAMS
        .iter()
        .map(|(name, workload, threads)| {
            plan.cell(
                name,
                workload,
                &[("threads", threads.unwrap_or(plan.threads)), ("permille", permille(name))],
            )
        })
        .collect();
    let lines = |target: &dyn Fn(&Cell) -> Option<Target>| {
        cells.iter().map(|cell| line(cell.name.clone(), cell, target(cell))).collect::<Vec<_>>()
    };
    let fast = |_: &Cell| Some(Target::at_most(NO_SLOWER, Against::Least(&[peer::GLIBC, peer::MIMALLOC3])));
    let lean = |cell: &Cell| Some(if cell.name == MALLOC_LARGE { large_peak() } else { leaner() });
    let tables = vec![
        table(
            "(e) Small programs: CPU time, user and system, all threads",
            "cpu_ns",
            Unit::Millis,
            lines(&fast),
        ),
        table("(e) Small programs: wall time", "wall_ns", Unit::Millis, lines(&fast)),
        table("(e) Small programs: peak resident memory", "peak_bytes", Unit::Mebibytes, lines(&lean)),
        table(
            "(e) Small programs: resident memory at the end",
            "end_bytes",
            Unit::Mebibytes,
            lines(&|_| None),
        ),
    ];
    Section { name: "small", cells, tables }
}
