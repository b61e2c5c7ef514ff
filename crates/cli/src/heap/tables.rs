//! The tables of a heap profile: its processes, and the source lines that hold most. The terminal, the
//! files and the HTML page show the same tables.

use super::args::When;
use super::observed::{Observed, blocks, error};
use super::tree::{Line, Node};
use crate::named::names;
use std::cmp::Reverse;
use vellum_cost::Cause;
use vellum_report::Table;
use vellum_report::units::{bytes, count, many};
use vellum_wire::held::Amount;

/// Processes that are listed.
const PROCESSES_MAX: usize = 15;

/// The most lines of callers in a table.
const CALLERS_MAX: usize = 10;
/// A branch gets a line if it has at least this part of all bytes.
const SHARE_MIN: u64 = 50;
/// Columns of a table besides its names.
pub(super) const FIGURES_WIDTH: usize = 42;

/// A table, and a note on omitted rows.
pub(super) type Shown = (Table, Option<String>);

/// The processes; `None` if there is only one.
pub(super) fn processes(observed: &Observed) -> Option<Shown> {
    if observed.holders.len() < 2 {
        return None;
    }
    let mut holders: Vec<_> = observed.holders.iter().collect();
    holders.sort_by_key(|holder| Reverse(holder.holding.peak.bytes));
    let now = if observed.is_running() { "now" } else { "at the end" };
    let mut table = Table::plain(&["process", "pid", "peak", now, "allocated", "samples"], 1);
    for holder in holders.iter().take(PROCESSES_MAX) {
        let holding = &holder.holding;
        let sizes = [holding.peak, holding.now, holding.ever].map(|amount| bytes(amount.bytes));
        let mut row = vec![holder.name.clone(), holder.pid.to_string()];
        row.extend(sizes);
        row.push(count(holding.ever.samples));
        table.row(row);
    }
    let more = holders.len().saturating_sub(PROCESSES_MAX);
    Some((table, (more > 0).then(|| format!("and {} more", count(more as u64)))))
}

/// The direction of the lines below a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// No lines below.
    Flat,
    /// From allocating lines to their callers.
    Callers,
    /// From the program's start to the allocating lines.
    Callees,
}

/// The lines that hold most, under a title, with names of at most `room` columns. Below them are the heaviest
/// call paths, of at most `room` plus `FIGURES_WIDTH` columns. `None` if no line holds memory.
pub(super) fn sites(
    observed: &Observed,
    title: &str,
    when: When,
    tree: Tree,
    (top, room): (usize, usize),
) -> Option<Shown> {
    let causes: Vec<&Cause> = observed.sites.iter().map(|(cause, _)| cause).collect();
    let names = names(&causes, room);
    let mut root = Node::default();
    for stack in observed.stacks.iter().filter(|stack| when.of(&stack.holding).bytes > 0) {
        let (site, amount) = (&*names[stack.site], when.of(&stack.holding));
        match tree {
            Tree::Flat => root.add([site], amount),
            Tree::Callers => {
                root.add([site].into_iter().chain(stack.callers.iter().map(|(label, _)| &**label)), amount);
            }
            Tree::Callees => {
                let outer = stack.callers.iter().rev().map(|(label, name)| &label[..*name]);
                root.add(outer.chain([site]), amount);
            }
        }
    }
    let (arrow, title) = match tree {
        Tree::Flat => (' ', title.to_owned()),
        Tree::Callers => ('←', format!("{title} (← called by)")),
        Tree::Callees => ('→', format!("{title} (→ calls)")),
    };
    let roots = root.heaviest(0);
    if roots.is_empty() {
        return None;
    }
    let shown = &roots[..top.min(roots.len())];
    let branches = branches(shown, root.amount.bytes);
    let mut table = Table::plain(&[&title, "bytes", "share", "±", "blocks"], 1);
    let row = |name: String, amount: Amount| {
        let share = format!("{:.1} %", amount.bytes as f64 / root.amount.bytes.max(1) as f64 * 100.0);
        let error = (amount.samples > 0).then(|| format!("{:.0} %", error(amount) * 100.0));
        vec![name, bytes(amount.bytes), share, error.unwrap_or_default(), count(blocks(amount))]
    };
    for ((name, node), branches) in shown.iter().zip(&branches) {
        table.row(row((*name).to_owned(), node.amount));
        for line in branches {
            table.row(match line.amount {
                Some(amount) => row(line.text(arrow, room), amount),
                None => vec![line.text(arrow, room + FIGURES_WIDTH)],
            });
        }
    }
    let rest = roots.get(top..).filter(|rest| !rest.is_empty()).map(|rest| {
        let left = rest.iter().map(|(_, node)| node.amount.bytes).sum();
        format!("and {} with {}", many(rest.len() as u64, "more line"), bytes(left))
    });
    Some((table, rest))
}

/// The heaviest lines below each of the `roots`, [`CALLERS_MAX`] together at most.
fn branches<'a>(roots: &[(&str, &Node<'a>)], all: u64) -> Vec<Vec<Line<'a>>> {
    let mut least = all.div_ceil(SHARE_MIN).max(1);
    loop {
        let below = roots.iter().map(|(_, node)| {
            let mut lines = Vec::new();
            if node.amount.bytes >= least {
                node.below(1, least, &mut lines);
            }
            lines
        });
        let below: Vec<_> = below.collect();
        if below.iter().map(Vec::len).sum::<usize>() <= CALLERS_MAX {
            return below;
        }
        least += least.div_ceil(4);
    }
}
