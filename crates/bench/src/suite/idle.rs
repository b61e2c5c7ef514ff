//! (f) What is given back after a burst, while nobody allocates.

use super::{MIB, Plan, Section, line, table};
use crate::target::{Against, Target};
use crate::{Cell, Unit};

/// "back within 10 % of live size a few seconds after a burst is freed, by idle threads too".
const END: f64 = 1.10;
/// "a few seconds".
const IDLE_MS: usize = 3000;

pub(super) fn section(plan: &Plan) -> Section {
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
    ];
    Section { name: "idle", cells: named.into_iter().map(|(_, cell)| cell).collect(), tables }
}
