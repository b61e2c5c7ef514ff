//! Section `large` ("a" in tables): the cost of large blocks: of reused ones, of ones that are never written
//! to, and of ones on new memory.

use super::{GIB, KIB, MIB, Plan, Section, large_peak, line, size, table, tag};
use crate::target::{Against, Target};
use crate::{Arm, Cell, Unit, peer};

/// The column of memory that stays mapped.
const FLOOR: &str = "floor";

/// Goal: the cost of reuse at most this multiple of the floor.
const REUSE: f64 = 1.3;
/// Goal: the largest block's time at most this multiple of the smallest one's, without touching.
const INVARIANCE: f64 = 2.0;
/// Goal: a first touch this many times cheaper than glibc's.
const COLD: f64 = 5.0;

pub(crate) fn section(plan: &Plan) -> Section {
    let reused = plan.pick(
        [256 * KIB, 512 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB].to_vec(),
        [256 * KIB, MIB, 16 * MIB, 64 * MIB, GIB].to_vec(),
    );
    let reuse: Vec<Cell> = reused.iter().map(|bytes| reuse_cell(plan, *bytes)).collect();
    let pairs: Vec<Cell> = [MIB, 64 * MIB, GIB].iter().map(|bytes| pair_cell(plan, *bytes)).collect();
    let firsts = plan.pick([4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB].to_vec(), [4 * MIB, 64 * MIB].to_vec());
    let cold: Vec<Cell> = firsts.iter().map(|bytes| cold_cell(plan, *bytes)).collect();
    let mut sparse = plan.cell("sparse", "sparse", &[("bytes", 64 * MIB), ("count", 4)]);
    sparse.rounds = plan.pick(plan.rounds, 1);

    let labelled = |cells: &[Cell], sizes: &[usize], target: &dyn Fn(&Cell) -> Option<Target>| {
        cells
            .iter()
            .zip(sizes)
            .map(|(cell, bytes)| line(size(*bytes), cell, target(cell)))
            .collect::<Vec<_>>()
    };
    let first_pair = &pairs[0].name;
    let invariant = |cell: &Cell| {
        (cell.name != *first_pair).then(|| Target::at_most(INVARIANCE, Against::Cell(first_pair.clone())))
    };
    let mut cold_peaks = labelled(&cold, &firsts, &|_| Some(large_peak()));
    cold_peaks.push(line("1 page in 32", &sparse, Some(large_peak())));
    let tables = vec![
        table(
            "(a) Large blocks reused: allocate, write a byte a page, free; per page",
            "ns_per_page",
            Unit::Nanos,
            labelled(&reuse, &reused, &|_| Some(Target::at_most(REUSE, Against::Arm(FLOOR)))),
        ),
        table(
            "(a) Large blocks reused: peak resident memory",
            "peak_bytes",
            Unit::Mebibytes,
            labelled(&reuse, &reused, &|_| Some(large_peak())),
        ),
        table(
            "(a) Allocate and free alone, the block once touched",
            "pair_ns",
            Unit::Nanos,
            labelled(&pairs, &[MIB, 64 * MIB, GIB], &invariant),
        ),
        table(
            "(a) Large blocks for the first time: allocate and write a byte a page; per page",
            "ns_per_page",
            Unit::Nanos,
            labelled(&cold, &firsts, &|_| Some(Target::faster(COLD, Against::Arm(peer::GLIBC)))),
        ),
        table(
            "(a) Large blocks for the first time: peak resident memory",
            "peak_bytes",
            Unit::Mebibytes,
            cold_peaks,
        ),
    ];
    let cells = reuse.into_iter().chain(pairs).chain(cold).chain([sparse]).collect();
    Section { name: "large", cells, tables }
}

fn reuse_cell(plan: &Plan, bytes: usize) -> Cell {
    // Peers that fault every time need half a second for a gigabyte.
    let groups = if bytes >= 256 * MIB { plan.pick(3, 1) } else { plan.pick(9, 5) };
    let params = [("bytes", bytes), ("groups", groups)];
    let mut cell = plan.cell(&format!("large-{}", tag(bytes)), "large", &params);
    if let Some(glibc) = plan.roster.get(peer::GLIBC) {
        cell.arms.push(Arm { label: FLOOR.to_owned(), launch: plan.launch(glibc, "retouch", &params) });
    }
    if bytes >= 256 * MIB {
        cell.rounds = plan.few_rounds();
    }
    cell
}

fn pair_cell(plan: &Plan, bytes: usize) -> Cell {
    let params = [("bytes", bytes), ("pairs", plan.pick(2000, 500)), ("groups", plan.pick(21, 7))];
    let mut cell = plan.cell(&format!("pair-{}", tag(bytes)), "pair", &params);
    // These lines are compared with each other round by round, so all have the same number of rounds.
    cell.rounds = plan.few_rounds();
    cell
}

fn cold_cell(plan: &Plan, bytes: usize) -> Cell {
    // At least 64 MiB in total, so that the first blocks of a process do not dominate.
    let count = (64 * MIB).div_ceil(bytes);
    let mut cell = plan.cell(&format!("cold-{}", tag(bytes)), "cold", &[("bytes", bytes), ("count", count)]);
    cell.prepare = plan.back(2 * bytes * count);
    cell
}
