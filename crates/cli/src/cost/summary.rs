//! Sums by operation, by function and by file.

use super::closing::closing;
use super::group::Group;
use super::observed::Observed;
use super::words::{bytes_column, label, times_columns};
use std::collections::BTreeMap;
use std::fmt::Write;
use vellum_cost::{Item, Place};
use vellum_measure::Unit;
use vellum_report::units::count;
use vellum_report::{Style, Table};

/// Functions and files that are listed.
const ROWS_MAX: usize = 25;
/// The longest name, and the shortest that one is cut to.
const NAME_WIDTH: usize = 44;
const NAME_MIN: usize = 12;

/// The summary.
pub(crate) fn render(observed: &Observed, style: Style, width: usize) -> String {
    let items = &observed.profile.items;
    let mut text = String::new();
    let mut table = |title: &str, name: &dyn Fn(&Item) -> Option<String>| {
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for item in items {
            if let Some(name) = name(item) {
                groups.entry(name).or_default().add(item);
            }
        }
        text.push_str(&rows(title, groups, style, width));
    };
    table("by operation", &|item| Some(label(item.operation)));
    table("by function", &|item| match &item.cause.place {
        place if place.system_library().is_some() => place.system_library().map(ToString::to_string),
        Place::Line { function, file, line } if function.is_empty() => Some(format!("{file}:{line}")),
        Place::Line { function, .. } | Place::Function { function, .. } => Some(function.to_string()),
        other => Some(other.to_string()),
    });
    table("by file", &|item| match &item.cause.place {
        Place::Line { file, .. } => Some(file.to_string()),
        Place::Function { module, .. } | Place::Offset { module, .. } => Some(format!("{module} (no lines)")),
        Place::Unknown => Some(Place::Unknown.to_string()),
    });
    text + &closing(observed, style, width)
}

/// A table, the dearest first.
fn rows(title: &str, groups: BTreeMap<String, Group>, style: Style, width: usize) -> String {
    let mut groups: Vec<(String, Group)> = groups.into_iter().collect();
    groups.sort_by(|(_, a), (_, b)| b.total_ns.total_cmp(&a.total_ns).then(b.count.cmp(&a.count)));
    // Where a line is short, the deviation goes first: names are worth more.
    let whole = table(title, &groups, NAME_WIDTH, true);
    let table = if whole.width("") <= width {
        whole
    } else {
        let names = (NAME_MIN..NAME_WIDTH).rev().step_by(2);
        let narrow = names.map(|wide| table(title, &groups, wide, false));
        narrow.into_iter().find(|table| table.width("") <= width).unwrap_or(whole)
    };
    let more = groups.len().saturating_sub(ROWS_MAX);
    let mut text = table.render("", width, style);
    if more > 0 {
        let left: u64 = groups[ROWS_MAX..].iter().map(|(_, group)| group.count).sum();
        let _ = writeln!(text, "and {} more with {} operations", count(more as u64), count(left));
    }
    text.push('\n');
    text
}

/// The rows, with names of at most this width, and with all that is known or what fits.
fn table(title: &str, groups: &[(String, Group)], wide: usize, is_whole: bool) -> Table {
    let heads = [title, "count", "bytes", "in all", "mean", "min", "max", "std", ""];
    let heads = if is_whole { &heads[..] } else { &heads[..7] };
    let mut table = Table::plain(heads, 1);
    if is_whole {
        table = table.with_words_last();
    }
    for (name, group) in groups.iter().take(ROWS_MAX) {
        let mut row = vec![shortened(name, wide), count(group.count), bytes_column(group.bytes)];
        if let Some(times) = group.times() {
            let mark = if times.n < group.count { "~" } else { "" };
            row.push(format!("{mark}{}", Unit::Nanoseconds.scaled(group.total_ns)));
            row.extend(times_columns(&times, times.n < group.count));
            row.extend((group.disturbed > 0).then(|| format!("{} disturbed", count(group.disturbed))));
        }
        row.truncate(heads.len());
        table.row(row);
    }
    table
}

/// The end of a name that is too long: what tells paths apart is there.
fn shortened(name: &str, wide: usize) -> String {
    let length = name.chars().count();
    if length <= wide {
        return name.to_owned();
    }
    format!("…{}", name.chars().skip(length - wide + 1).collect::<String>())
}
