//! Section `idle` ("f" in tables): the memory that an idle process keeps after a burst of allocations.

use super::{MIB, Plan, Section, line, table};
use crate::target::{Against, Target};
use crate::{Cell, Unit, peer};

/// Goal: within 10 % of the live size a few seconds after a burst is freed, also by idle threads.
const END: f64 = 1.10;
/// The few seconds of the goal, in milliseconds.
const IDLE_MS: usize = 3000;
/// Goal: at most 1.1 times the memory that glibc keeps after `malloc_trim`.
const SPARSE_END: f64 = 1.10;
/// The decay time, a second decay time for slabs that were still in use, and the kernel's time for huge
/// pages.
const SPARSE_MS: usize = 6000;
/// Number of blocks at most, if all have the least size.
const SPARSE_BLOCKS: usize = 4 * MIB;

pub(crate) fn section(plan: &Plan) -> Section {
    let bytes = plan.pick(256 * MIB, 128 * MIB);
    let mut named: Vec<(String, Cell)> = Vec::new();
    for (workload, blocks) in [
        ("idle-large", "blocks of 256 KiB to 8 MiB"),
        ("idle-small", "blocks of 16 to 512 B"),
        ("idle-nodes", "nodes in batches"),
    ] {
        for (other, who) in [(0, "main thread"), (1, "idle thread")] {
            let name = format!("{workload}-{}", if other == 1 { "other" } else { "self" });
            let params = [("bytes", bytes), ("live", bytes / 8), ("idle_ms", IDLE_MS), ("other", other)];
            let mut cell = plan.cell(&name, workload, &params);
            cell.together = true;
            cell.rounds = plan.pick(plan.few_rounds(), 1);
            named.push((format!("{blocks}, {who}"), cell));
        }
    }
    let sparse = [("256 B to 4 KiB", "256", 256, 4096), ("16 to 256 B", "16", 16, 256)].map(
        |(label, tag, least, most)| {
            let bytes = bytes.min(least * SPARSE_BLOCKS);
            let mut cell = plan.cell_by(&format!("idle-sparse-{tag}"), |peer| {
                let trim = usize::from(peer.name == peer::GLIBC);
                let params = [
                    ("bytes", bytes),
                    ("least", least),
                    ("most", most),
                    ("idle_ms", SPARSE_MS),
                    ("trim", trim),
                ];
                Some(("idle-sparse", params.to_vec()))
            });
            cell.together = true;
            cell.rounds = plan.pick(plan.few_rounds(), 1);
            (label, cell)
        },
    );
    let survivors = sparse.iter().map(|(label, cell)| {
        line(*label, cell, Some(Target::at_most(SPARSE_END, Against::Arm(peer::GLIBC))))
    });
    let survivors = table(
        "(f) Six seconds after a burst of which one block in 50 stayed: resident memory; glibc's after malloc_trim",
        "end_bytes",
        Unit::Mebibytes,
        survivors.collect(),
    );
    let lines = |target: Option<Target>| {
        named.iter().map(|(label, cell)| line(label.clone(), cell, target.clone())).collect()
    };
    let tables = vec![
        table(
            "(f) Three seconds after a burst was freed: resident memory over what was resident before",
            "end_over_live",
            Unit::Ratio,
            lines(Some(Target::at_most(END, Against::Itself))),
        ),
        table("(f) The same, resident memory", "end_bytes", Unit::Mebibytes, lines(None)),
        survivors,
    ];
    let cells = named.into_iter().map(|(_, cell)| cell).chain(sparse.map(|(_, cell)| cell));
    Section { name: "idle", cells: cells.collect(), tables }
}
