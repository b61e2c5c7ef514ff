//! Section (c): large aligned blocks, relocated and swapped by moving page tables or by copying.

use super::{GIB, MIB, Plan, Section, line, size, table, tag};
use crate::target::{Against, Target};
use crate::{Cell, Unit, peer};

/// Goals: times faster than memcpy in a process with one running thread …
const ALONE: f64 = 20.0;
/// … and beside a second running thread.
const BESIDE: f64 = 5.0;

pub(super) fn section(plan: &Plan) -> Section {
    let mut cells = Vec::new();
    let mut lines = Vec::new();
    // Touching four gigabytes for every arm would take half the time of a quick run.
    for bytes in [64 * MIB, plan.pick(GIB, 256 * MIB)] {
        for (beside, faster) in [(0, ALONE), (1, BESIDE)] {
            for what in ["relocate", "swap"] {
                let cell = cell(plan, what, bytes, beside);
                let with = if beside == 1 { ", second thread running" } else { "" };
                let target = Target::faster(faster, Against::Arm(peer::GLIBC));
                lines.push(line(format!("{what} {}{with}", size(bytes)), &cell, Some(target)));
                cells.push(cell);
            }
        }
    }
    let title = "(c) Contents to another place: one operation (column glibc: memcpy into warm memory)";
    Section { name: "relocate", cells, tables: vec![table(title, "move_ns", Unit::Millis, lines)] }
}

fn cell(plan: &Plan, what: &'static str, bytes: usize, beside: usize) -> Cell {
    let params = move |moves: usize| vec![("bytes", bytes), ("moves", moves), ("beside", beside)];
    let name = format!("{what}-{}{}", tag(bytes), if beside == 1 { "-beside" } else { "" });
    let big = bytes > 64 * MIB;
    let copies = if big { 5 } else { plan.pick(21, 5) };
    let mut cell = plan.cell_by(&name, |peer| match peer.name {
        peer::GLIBC => Some(("copy", params(copies))),
        peer::VELLUM => Some((what, params(plan.pick(51, 11)))),
        _ => None,
    });
    if big {
        cell.rounds = plan.few_rounds();
    }
    cell
}
