//! The report for people: sums, and the lines that hold most at the peak, at the end, and that allocate most.

use super::observed::{Observed, blocks, error};
use super::resident;
use crate::text::{ending, shown_command};
use crate::wrap::wrapped;
use std::cmp::Reverse;
use std::fmt::Write;
use vellum_cost::{Cause, Holding, Place};
use vellum_report::table::shortened;
use vellum_report::units::{bytes, count, many, size};
use vellum_report::{Style, Table};
use vellum_wire::held::Amount;

/// Columns of a label, and of what stands before the words behind one.
const LABEL_WIDTH: usize = 10;
const LABELLED: usize = LABEL_WIDTH + 3;
/// Columns of a table beside its names.
const FIGURES_WIDTH: usize = 42;
/// Columns that a function's name has at the least.
const FUNCTION_MIN: usize = 7;
/// Processes that are listed.
const PROCESSES_MAX: usize = 15;

/// The report.
pub(crate) fn render(observed: &Observed, top: usize, width: usize, style: Style) -> String {
    let sum = observed.sum();
    let mut text = String::new();
    let head = format!("vellum heap: {}", shown_command(&observed.command));
    let _ = writeln!(text, "{}: {}", style.bold(&head), ending(&observed.outcome()));
    let mut line = |label: String, words: &str| {
        for (at, part) in wrapped(words, LABELLED).into_iter().enumerate() {
            let label = if at == 0 { label.clone() } else { " ".repeat(LABEL_WIDTH) };
            let _ = writeln!(text, "  {label} {part}");
        }
    };
    let label = |label: &str| style.label(&format!("{label:<LABEL_WIDTH$}"));
    let said = |amount: Amount| format!("{} in {}", bytes(amount.bytes), many(blocks(amount), "block"));
    line(label("peak"), &said(sum.peak));
    let (now, held_now) =
        if observed.is_running() { ("now", "held now") } else { ("at the end", "held at the end") };
    line(label(now), &said(sum.now));
    line(label("allocated"), &said(sum.ever));
    line(
        label("samples"),
        &format!(
            "{} of {}, one every {} on average: figures are estimates, ± their standard error",
            count(sum.ever.samples),
            many(observed.holders.len() as u64, "process"),
            size(usize::try_from(observed.interval).unwrap_or(usize::MAX))
        ),
    );
    for note in &observed.notes {
        line(style.notice(&format!("{:<LABEL_WIDTH$}", "note")), note);
    }
    text.push_str(&processes(observed, width, style));
    type Of = fn(&Holding) -> Amount;
    let tables: [(&str, Of); 3] = [
        ("held at the peak", |holding| holding.peak),
        (held_now, |holding| holding.now),
        ("allocated in all", |holding| holding.ever),
    ];
    for (title, of) in tables {
        text.push_str(&sites(observed, title, of, top, width, style));
    }
    text + &resident::render(observed, top, width, style)
}

fn processes(observed: &Observed, width: usize, style: Style) -> String {
    if observed.holders.len() < 2 {
        return String::new();
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
    let mut text = format!("\n{}", table.render("", width, style));
    if holders.len() > PROCESSES_MAX {
        let _ = writeln!(text, "and {} more", count((holders.len() - PROCESSES_MAX) as u64));
    }
    text
}

fn sites(
    observed: &Observed,
    title: &str,
    of: fn(&Holding) -> Amount,
    top: usize,
    width: usize,
    style: Style,
) -> String {
    let mut sites: Vec<(&Cause, Amount)> =
        observed.sites.iter().map(|(cause, holding)| (cause, of(holding))).collect();
    sites.retain(|(_, amount)| amount.samples > 0);
    sites.sort_by_key(|(_, amount)| Reverse(amount.bytes));
    let all: u64 = sites.iter().map(|(_, amount)| amount.bytes).sum();
    if sites.is_empty() {
        return format!("\n{title}: nothing\n");
    }
    let mut table = Table::plain(&[title, "bytes", "share", "±", "blocks"], 1);
    for (cause, amount) in sites.iter().take(top) {
        table.row(vec![
            name(cause, width.saturating_sub(FIGURES_WIDTH)),
            bytes(amount.bytes),
            format!("{:.1} %", amount.bytes as f64 / all.max(1) as f64 * 100.0),
            format!("{:.0} %", error(*amount) * 100.0),
            count(blocks(*amount)),
        ]);
    }
    let mut text = format!("\n{}", table.render("", width, style));
    if let Some(rest) = sites.get(top..).filter(|rest| !rest.is_empty()) {
        let left = rest.iter().map(|(_, amount)| amount.bytes).sum();
        let _ = writeln!(text, "and {} with {}", many(rest.len() as u64, "more line"), bytes(left));
    }
    text
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
