//! Section `growth` ("b" in tables): blocks that grow by `realloc`.

use super::{GIB, MIB, NO_SLOWER, OTHERS, Plan, Section, line, size, table};
use crate::target::{Against, Target};
use crate::{Cell, Unit};

/// Goal: under 10 ms in every column.
const WARM_NS: f64 = 10e6;
/// Goal: at least 4 times as fast as the fastest peer.
const WARM_FASTER: f64 = 4.0;
/// Goal: peak memory at most 1.05 times the final size.
const PEAK: f64 = 1.05;

pub(crate) fn section(plan: &Plan) -> Section {
    let (doubled, stepped, each) =
        (plan.pick(GIB, 256 * MIB), plan.pick(256 * MIB, 32 * MIB), plan.pick(128 * MIB, 16 * MIB));
    let loops = plan.pick(7, 3);
    let grown = |name: &str, bytes: usize| {
        let mut cell = plan.cell(name, name, &[("bytes", bytes), ("loops", loops)]);
        cell.rounds = plan.pick(plan.few_rounds(), 2);
        cell.prepare = plan.back(2 * bytes);
        cell
    };
    let named: [(String, Cell); 3] = [
        (format!("doubling to {}", size(doubled)), grown("doubling", doubled)),
        (format!("+64 KiB to {}", size(stepped)), grown("steps", stepped)),
        (format!("two in turn to {} each", size(each)), grown("interleaved", each)),
    ];
    let lines = |target: &dyn Fn() -> Option<Target>| {
        named.iter().map(|(label, cell)| line(label.clone(), cell, target())).collect::<Vec<_>>()
    };
    let fastest = || Against::Least(OTHERS);
    let tables = vec![
        table(
            "(b) Growth, touching included, warm: against the clock",
            "warm_ns",
            Unit::Millis,
            lines(&|| Some(Target::at_most(WARM_NS, Against::Itself))),
        ),
        table(
            "(b) Growth, touching included, warm: against the fastest peer",
            "warm_ns",
            Unit::Millis,
            lines(&|| Some(Target::faster(WARM_FASTER, fastest()))),
        ),
        table("(b) Growth, inside realloc alone, warm", "warm_realloc_ns", Unit::Millis, lines(&|| None)),
        table(
            "(b) Growth, touching included, the first time in a process",
            "cold_ns",
            Unit::Millis,
            lines(&|| Some(Target::at_most(NO_SLOWER, fastest()))),
        ),
        table(
            "(b) Growth, peak resident memory over the final size",
            "peak_over_final",
            Unit::Ratio,
            lines(&|| Some(Target::at_most(PEAK, Against::Itself))),
        ),
    ];
    Section { name: "growth", cells: named.map(|(_, cell)| cell).into(), tables }
}
