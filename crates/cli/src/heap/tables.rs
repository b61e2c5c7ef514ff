//! The tables of a profile: its processes, and the lines that hold most. The terminal, files and the page
//! show the same ones.

use super::observed::{Observed, blocks, error};
use crate::named::name;
use std::cmp::Reverse;
use vellum_cost::{Cause, Holding};
use vellum_report::Table;
use vellum_report::units::{bytes, count, many};
use vellum_wire::held::Amount;

/// Processes that are listed.
const PROCESSES_MAX: usize = 15;

/// A table, and a word on what it leaves out.
pub(super) type Shown = (Table, Option<String>);

/// The processes; `None` where there is but one.
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

/// The lines that hold most, under a title, with names of at most `room` columns; `None` where none holds
/// any.
pub(super) fn sites(
    observed: &Observed,
    title: &str,
    of: fn(&Holding) -> Amount,
    top: usize,
    room: usize,
) -> Option<Shown> {
    let mut sites: Vec<(&Cause, Amount)> =
        observed.sites.iter().map(|(cause, holding)| (cause, of(holding))).collect();
    sites.retain(|(_, amount)| amount.samples > 0);
    sites.sort_by_key(|(_, amount)| Reverse(amount.bytes));
    let all: u64 = sites.iter().map(|(_, amount)| amount.bytes).sum();
    if sites.is_empty() {
        return None;
    }
    let mut table = Table::plain(&[title, "bytes", "share", "±", "blocks"], 1);
    for (cause, amount) in sites.iter().take(top) {
        table.row(vec![
            name(cause, room),
            bytes(amount.bytes),
            format!("{:.1} %", amount.bytes as f64 / all.max(1) as f64 * 100.0),
            format!("{:.0} %", error(*amount) * 100.0),
            count(blocks(*amount)),
        ]);
    }
    let rest = sites.get(top..).filter(|rest| !rest.is_empty()).map(|rest| {
        let left = rest.iter().map(|(_, amount)| amount.bytes).sum();
        format!("and {} with {}", many(rest.len() as u64, "more line"), bytes(left))
    });
    Some((table, rest))
}
