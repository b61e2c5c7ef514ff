//! The tables of `vellum cost`: costs by line, by operation, by function and by file, the largest first.
//!
//! In the tables by line, by function and by file, each library of the system or of an interpreter has a
//! single row, even if the names of its functions or its source lines are known.

use super::closing::closing;
use super::group::Group;
use super::observed::Observed;
use super::words::{bytes_column, label, times_columns};
use std::collections::BTreeMap;
use std::path::Path;
use vellum_cost::{Item, Place};
use vellum_measure::Unit;
use vellum_report::table::{end, shortened};
use vellum_report::units::count;
use vellum_report::{Report, Section, Table};

/// Lines, functions and files that are listed.
const ROWS_MAX: usize = 20;
/// The longest name.
const NAME_WIDTH: usize = 44;
/// Columns for a function's name after its line.
const FUNCTION_WIDTH: usize = 24;
/// The smallest share of the total that is listed.
const SHARE_MIN: f64 = 0.001;

pub(super) fn report(observed: &Observed) -> Report<'static> {
    let mut report = Report::new(None);
    report.sections([dearest(observed, None)]);
    let library = |item: &Item| observed.profile.library(&item.cause.place).map(|name| name.into_owned());
    let mut table = |title: &str, name: &dyn Fn(&Item) -> String| {
        report.sections([sums(title, observed, &|item| Some(name(item)))]);
    };
    table("by operation", &|item| label(item.operation));
    table("by function", &|item| match &item.cause.place {
        _ if let Some(library) = library(item) => library,
        Place::Line { function, file, line } if function.is_empty() => format!("{file}:{line}"),
        Place::Line { function, .. } | Place::Function { function, .. } => function.to_string(),
        other => other.to_string(),
    });
    table("by file", &|item| match &item.cause.place {
        Place::Line { file, .. } => library(item).unwrap_or_else(|| file.to_string()),
        Place::Function { module, .. } | Place::Offset { module, .. } => format!("{module} (no lines)"),
        Place::Unknown => Place::Unknown.to_string(),
    });
    report.sections([closing(observed)]);
    report
}

/// A filter of items by file.
pub(crate) type Wanted<'a> = Option<&'a dyn Fn(&Item) -> bool>;

/// The most expensive lines that pass the filter; without one, of all lines, libraries and functions.
pub(crate) fn dearest(observed: &Observed, wanted: Wanted<'_>) -> Section {
    let here = std::env::current_dir().unwrap_or_default();
    let name = |item: &Item| match &item.cause.place {
        place if let (None, Some(library)) = (wanted, observed.profile.library(place)) => {
            library.into_owned()
        }
        Place::Line { file, line, function } => {
            let file = Path::new(&**file);
            let file = file.strip_prefix(&here).unwrap_or(file).display();
            format!("{file}:{line} {}", shortened(function, FUNCTION_WIDTH)).trim_end().to_owned()
        }
        place => place.to_string(),
    };
    let is_wanted = |item: &Item| wanted.is_none_or(|is_wanted| is_wanted(item));
    sums("dearest lines", observed, &|item| is_wanted(item).then(|| name(item)))
}

/// A table of the sums of items by their names, the most expensive first.
fn sums(title: &str, observed: &Observed, name: &dyn Fn(&Item) -> Option<String>) -> Section {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for item in &observed.profile.items {
        if let Some(name) = name(item) {
            groups.entry(name).or_default().add(item, observed.cost_ns(item));
        }
    }
    let mut groups: Vec<(String, Group)> = groups.into_iter().collect();
    groups.sort_by(|(_, a), (_, b)| b.cost_ns.total_cmp(&a.cost_ns).then(b.count.cmp(&a.count)));
    // Without times, shares are computed from counts.
    let all = observed.all_ns();
    let operations = groups.iter().map(|(_, group)| group.count).sum::<u64>() as f64;
    let share = |group: &Group| match all {
        0.0 => group.count as f64 / operations,
        _ => group.cost_ns / all,
    };
    let listed = groups.iter().take_while(|(_, group)| share(group) >= SHARE_MIN).count().min(ROWS_MAX);
    let (rows, others) = groups.split_at(listed.max(1).min(groups.len()));
    let heads = [title, "share", "cost", "count", "bytes", "mean", "min", "max", "std", ""];
    // On a short line the other times are dropped before the means, to keep names readable.
    let mut table = Table::plain(&heads, 1).with_words_last().with_spare(4).keeping_ends();
    for (name, group) in rows {
        table.row(row(name, group, share(group)));
    }
    let mut section = Section::new();
    section.table(table);
    if !others.is_empty() {
        let left: u64 = others.iter().map(|(_, group)| group.count).sum();
        let part: f64 = others.iter().map(|(_, group)| share(group)).sum::<f64>() * 100.0;
        let (more, left) = (count(others.len() as u64), count(left));
        section.remark(format!("and {more} more: {part:.1} %, {left} operations"));
    }
    section
}

fn row(name: &str, group: &Group, share: f64) -> Vec<String> {
    let is_sampled = group.is_sampled();
    let cost = Unit::Nanoseconds.scaled(group.cost_ns);
    let mut row = vec![
        end(name, NAME_WIDTH),
        format!("{:.1} %", share * 100.0),
        format!("{}{cost}", if is_sampled { "~" } else { "" }),
        count(group.count),
        bytes_column(group.bytes),
    ];
    if let Some(times) = group.times() {
        row.extend(times_columns(&times, is_sampled));
        row.extend((group.disturbed > 0).then(|| format!("{} disturbed", count(group.disturbed))));
    }
    row
}
