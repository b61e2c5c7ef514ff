//! Section (d): four million list nodes, allocated one by one and as a batch.

use super::{OTHERS, Plan, Section, line, table};
use crate::target::{Against, Target};
use crate::{Cell, Unit, peer};

/// Goal: at least 2 times as fast as the fastest peer that allocates nodes one by one.
const FASTER: f64 = 2.0;
/// Nodes a call when the table of pointers is reused: the table fits the processor's cache.
const CHUNK: usize = 65_536;
const NODES: usize = 4_000_000;

pub(super) fn section(plan: &Plan) -> Section {
    let nodes = plan.pick(NODES, NODES / 4);
    let each = |name: &str, threads: usize, touch: usize, chunk: usize| {
        let mut params =
            vec![("nodes", nodes), ("threads", threads), ("touch", touch), ("loops", plan.pick(5, 3))];
        if chunk < nodes {
            params.push(("chunk", chunk));
        }
        plan.cell_by(name, |peer| {
            let workload = if peer.name == peer::VELLUM { "nodes-batch" } else { "nodes" };
            Some((workload, params.clone()))
        })
    };
    let one = each("batch-1", 1, 1, nodes);
    let two = each("batch-2", 2, 1, nodes);
    let walked = each("batch-walked", 1, 1, CHUNK);
    let bare = each("batch-construct", 1, 0, nodes);
    let plain = plan.cell("nodes", "nodes", &[("nodes", nodes), ("loops", plan.pick(5, 3))]);

    let count = |threads: usize| {
        let plural = if threads == 1 { "" } else { "s" };
        format!("{} million, {threads} thread{plural}", nodes / 1_000_000)
    };
    let both = |metric: &'static str, title: &str| {
        let target = || Some(Target::faster(FASTER, Against::Least(OTHERS)));
        let lines = vec![
            line(count(1), &one, target()),
            line(count(2), &two, target()),
            line(format!("{}, batches of {CHUNK} found by walking", count(1)), &walked, None),
        ];
        table(title, metric, Unit::Nanos, lines)
    };
    let tables = vec![
        both(
            "warm_node_ns",
            "(d) 16-byte list nodes allocated, written, linked and freed; per node, warm (Vellum: one call each way)",
        ),
        both("cold_node_ns", "(d) The same, the first time in a process"),
        table(
            "(d) The source's comparison: getting the nodes alone, untouched; per node, warm (Vellum: one call)",
            "warm_construct_ns",
            Unit::Nanos,
            vec![line(count(1), &bare, None)],
        ),
        table(
            "(d) For comparison: Vellum too one by one; per node, warm",
            "warm_node_ns",
            Unit::Nanos,
            vec![line(count(1), &plain, None)],
        ),
        table(
            "(d) Peak resident memory of the list",
            "peak_bytes",
            Unit::Mebibytes,
            vec![line("in batches", &one, None), line("one by one", &plain, Some(leaner()))],
        ),
    ];
    Section { name: "batch", cells: vec![one, two, walked, bare, plain] as Vec<Cell>, tables }
}

/// The target for peak memory of programs with small blocks.
pub(super) fn leaner() -> Target {
    Target::at_most(1.0, Against::Least(&[peer::MIMALLOC3, peer::JEMALLOC]))
}
