//! The tables of a profile: its processes, and the lines that hold most. The terminal, files and the page
//! show the same ones.

use super::observed::{Observed, blocks, error};
use std::cmp::Reverse;
use vellum_cost::{Cause, Holding, Place};
use vellum_report::Table;
use vellum_report::table::shortened;
use vellum_report::units::{bytes, count, many};
use vellum_wire::held::Amount;

/// Columns that a function's name has at the least.
const FUNCTION_MIN: usize = 7;
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

/// A cause in words: the function, its line, and what it called. Where there is no room for all, of what was
/// called nothing is said, and functions' names are cut: the line is what one looks for.
pub(super) fn name(cause: &Cause, room: usize) -> String {
    let via = cause.via.as_deref().filter(|via| *via != "the allocator");
    let via = via.map(|via| format!(" by {via}")).unwrap_or_default();
    let Place::Line { file, line, function } = &cause.place else {
        return format!("{}{via}", cause.place);
    };
    let place = format!(" {}:{line}", file.rsplit('/').next().unwrap_or(file));
    let whole = format!("{function}{place}{via}");
    if whole.chars().count() <= room {
        return whole;
    }
    let left = room.saturating_sub(place.chars().count()).max(FUNCTION_MIN);
    format!("{}{place}", shortened(function, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_not_cut_off_names() {
        let place = Place::Line { file: "/src/held.c".into(), line: 41, function: "a_long_function".into() };
        let cause = Cause { place, via: Some("strdup".into()) };
        let names = [40, 30, 20, 5].map(|room| name(&cause, room));
        let wanted = [
            "a_long_function held.c:41 by strdup",
            "a_long_function held.c:41",
            "a_long_fu… held.c:41",
            "a_long… held.c:41",
        ];
        assert_eq!(names, wanted);
    }
}
