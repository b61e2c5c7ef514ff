//! Changes of operations' counts and times between two saved runs of `vellum cost`.
//!
//! Operations are sorted by the change of total time, the largest increase first, the largest decrease last.
//! If a time is missing or changed only by noise, the change of the exact count is used instead.
//!
//! A change of the total time is noise if it is within two standard errors. For operations with an unchanged
//! count, it is also noise if the mean time changed by at most three times the *drift*. The drift is the
//! median change of mean times over all operations with unchanged counts. Three such medians are about two
//! standard deviations.

use super::json::SCHEMA;
use super::words::labelled;
use crate::document::{Saved, cause};
use crate::failure::Failure;
use crate::named::{name, signed, with_more};
use crate::screen;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use vellum_cost::Cause;
use vellum_measure::{Unit, median};
use vellum_report::units::count;
use vellum_report::{Look, Report, Section, Style, Table, stdout};
use vellum_wire::operation::Kind;

/// Columns of the table besides its names.
const FIGURES_WIDTH: usize = 69;

/// A place and an operation, in words.
type What = (Cause, String);

/// The number of operations, and their total nanoseconds if they were timed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    count: u64,
    total_ns: Option<f64>,
    /// The square of the total time's standard error.
    variance: f64,
    is_scaled: bool,
}

impl Sum {
    fn mean_ns(&self) -> Option<f64> {
        self.total_ns.map(|ns| ns / self.count as f64).filter(|ns| *ns > 0.0)
    }
}

/// An operation whose count or time has changed.
#[derive(Debug)]
struct Change {
    what: What,
    old: Sum,
    new: Sum,
}

impl Change {
    fn count(&self) -> i64 {
        self.new.count.cast_signed().wrapping_sub(self.old.count.cast_signed())
    }

    fn ns(&self) -> f64 {
        self.new.total_ns.unwrap_or(0.0) - self.old.total_ns.unwrap_or(0.0)
    }

    /// True if its time changed within noise; `None` without times. If the count, which is exact, has
    /// changed, the time counts as changed too.
    fn is_noise(&self, drift: f64) -> Option<bool> {
        self.old.total_ns.or(self.new.total_ns)?;
        let error = (self.old.variance + self.new.variance).sqrt();
        let drifted = || {
            let (old, new) = self.old.mean_ns().zip(self.new.mean_ns())?;
            Some(self.count() == 0 && (new / old).ln().abs() <= 3.0 * drift)
        };
        Some(self.ns().abs() <= 2.0 * error || drifted().unwrap_or(false))
    }
}

/// The median change of the mean times of operations whose counts are equal.
fn drift(changes: &[Change]) -> f64 {
    let equal = changes.iter().filter(|change| change.count() == 0);
    let means = equal.filter_map(|change| change.old.mean_ns().zip(change.new.mean_ns()));
    median(&means.map(|(old, new)| (new / old).ln().abs()).collect::<Vec<f64>>()).unwrap_or(0.0)
}

/// Shows the changes on standard output.
pub(super) fn diff(old: &Path, new: &Path, top: usize) -> Result<u8, Failure> {
    let [old, new] = [old, new]
        .map(|path| Saved { path, schema: SCHEMA, maker: "vellum cost --json FILE" }.entries("items", item));
    let look = Look::brief(Style::of_stdout()).wide(screen::columns());
    let section = section(&between(old?, new?), top, look.columns);
    let text = Report::new(None).sections([section]).text(look);
    stdout::write_all(text.as_bytes())?;
    Ok(0)
}

fn item(entry: &Value) -> Option<(What, Sum)> {
    let id = entry["operation"].as_str()?;
    let kind = Kind::ALL.iter().find(|kind| kind.id() == id)?;
    let max = entry["size_max_bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
    let has_sizes = max.is_some() || !entry["size_above_bytes"].is_null();
    let operation = labelled(*kind, has_sizes.then_some(max));
    let (count, times) = (entry["count"].as_u64()?, &entry["times"]);
    let deviation = times["std_ns"].as_f64().unwrap_or(0.0) * count as f64;
    let sum = Sum {
        count,
        total_ns: times["total_ns"].as_f64(),
        variance: deviation * deviation / times["timed"].as_f64().unwrap_or(1.0).max(1.0),
        is_scaled: entry["count_is_scaled"] == true,
    };
    Some(((cause(entry)?, operation), sum))
}

/// The changes, those of most time first.
fn between(old: Vec<(What, Sum)>, new: Vec<(What, Sum)>) -> Vec<Change> {
    let mut both: BTreeMap<What, [Sum; 2]> = BTreeMap::new();
    for (at, items) in [old, new].into_iter().enumerate() {
        for (what, item) in items {
            let sum = &mut both.entry(what).or_default()[at];
            sum.count = sum.count.saturating_add(item.count);
            sum.variance += item.variance;
            sum.is_scaled |= item.is_scaled;
            sum.total_ns = [sum.total_ns, item.total_ns].into_iter().flatten().reduce(|a, b| a + b);
        }
    }
    let changes = both.into_iter().map(|(what, [old, new])| Change { what, old, new });
    let mut changes: Vec<Change> = changes.filter(|change| change.old != change.new).collect();
    let drift = drift(&changes);
    let key = |change: &Change| {
        let ns = if change.is_noise(drift) == Some(true) { 0.0 } else { change.ns() };
        (ns, change.count() as f64, change.ns())
    };
    changes.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(b.2.total_cmp(&a.2))
    });
    changes
}

/// A table: half of its lines grew most, half of them shrank most.
fn section(changes: &[Change], top: usize, width: usize) -> Section {
    let mut section = Section::new();
    if changes.is_empty() {
        section.remark("nothing has changed".to_owned());
        return section;
    }
    let table = Table::plain(&["operation", "count was", "is", "time was", "is", "change", ""], 1);
    let mut table = table.with_words_last();
    let drift = drift(changes);
    let hidden = changes.len().saturating_sub(top);
    let first = top.div_ceil(2).min(changes.len());
    let shown = changes.iter().enumerate().filter(|(at, _)| *at < first || *at >= first + hidden);
    for (_, change) in shown {
        let (cause, operation) = &change.what;
        let room = width.saturating_sub(FIGURES_WIDTH + operation.chars().count());
        let time = |sum: Sum| sum.total_ns.map_or_else(String::new, |ns| Unit::Nanoseconds.scaled(ns));
        let changed = match (change.old.total_ns, change.new.total_ns) {
            (None, None) => signed(change.count() as f64, |value| count(value as u64)),
            _ => signed(change.ns(), |ns| Unit::Nanoseconds.scaled(ns)),
        };
        table.row(vec![
            format!("{operation} {}", name(cause, room)),
            count(change.old.count),
            count(change.new.count),
            time(change.old),
            time(change.new),
            changed,
            match change.is_noise(drift) {
                Some(true) => "noise".to_owned(),
                None if change.old.is_scaled || change.new.is_scaled => "scaled".to_owned(),
                _ => String::new(),
            },
        ]);
    }
    let operations: i64 = changes.iter().map(Change::count).sum();
    let operations = signed(operations as f64, |value| count(value as u64));
    let ns = signed(changes.iter().map(Change::ns).sum(), |ns| Unit::Nanoseconds.scaled(ns));
    section.table(table).remark(format!("{}in all {operations} operations, {ns}", with_more(hidden)));
    let timed: Vec<bool> = changes.iter().filter_map(|change| change.is_noise(drift)).collect();
    let noise = timed.iter().filter(|is_noise| **is_noise).count();
    let [noise, all] = [noise, timed.len()].map(|number| count(number as u64));
    section.remark(format!(
        "{noise} of {all} changes of time are noise: between these runs mean times drifted by {:.0} %; \
         counts are exact, but those marked \"scaled\"",
        drift.exp_m1() * 100.0
    ));
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(line: u32, operation: &str, count: u64, total_ns: Option<f64>) -> Value {
        json!({
            "place": {"kind": "line", "file": "/a/list.c", "line": line, "function": "push"}, "via": null,
            "operation": operation, "size_max_bytes": (operation == "malloc").then_some(64),
            "size_above_bytes": null, "count": count,
            "times": total_ns.map(|ns| json!({"total_ns": ns, "std_ns": 0.5 * ns / count as f64, "timed": count})),
        })
    }

    #[test]
    fn changes_sort_from_more_time_to_less() {
        let old = [
            entry(1, "malloc", 10, Some(100.0)),
            entry(2, "free", 10, Some(9000.0)),
            entry(3, "fault_minor", 5, None),
            entry(4, "free", 7, Some(70.0)),
            entry(5, "free", 100, Some(1000.0)),
        ];
        let new = [
            entry(1, "malloc", 30, Some(5100.0)),
            entry(3, "fault_minor", 8, None),
            entry(4, "free", 7, Some(70.0)),
            entry(5, "free", 100, Some(1100.0)),
        ];
        let read = |items: &[Value]| items.iter().map(|entry| item(entry).unwrap()).collect();
        let changes = between(read(&old), read(&new));
        let seen: Vec<(i64, f64)> = changes.iter().map(|change| (change.count(), change.ns())).collect();
        assert_eq!(seen, [(20, 5000.0), (3, 0.0), (0, 100.0), (-10, -9000.0)]);
        let noise: Vec<Option<bool>> = changes.iter().map(|change| change.is_noise(0.0)).collect();
        assert_eq!(noise, [Some(false), None, Some(true), Some(false)]);
        assert_eq!(changes[3].is_noise(9.0), Some(false), "what is gone is no noise");
        let text = |changes: &[Change]| {
            let look = Look::brief(Style::plain()).wide(120);
            Report::new(None).sections([section(changes, 2, look.columns)]).text(look)
        };
        assert_eq!(text(&[]), "nothing has changed\n");
        let text = text(&changes);
        assert!(text.contains("malloc(≤64 B) push list.c:1") && text.contains("+5.00 µs"), "{text}");
        assert!(text.contains("with 2 more lines, in all +13 operations, -3.90 µs"), "{text}");
        assert!(!text.contains("page fault"), "{text}");
    }

    #[test]
    fn invalid_entries_are_refused() {
        assert_eq!(item(&json!({"operation": "malloc"})), None);
        assert_eq!(item(&entry(1, "walk", 1, None)), None);
    }
}
