//! Sums by operation, by function and by file.
//!
//! A sum's mean is that of all its operations, each item's weighed by its exact count; its extremes are the items'.

use crate::cost::Observed;
use crate::cost_text::{closing, label, times_columns};
use crate::style::Style;
use crate::units::count;
use std::collections::BTreeMap;
use std::fmt::Write;
use vellum_measure::{Stat, Unit};
use vellum_probe::cost::{Item, Place};

/// Functions and files that are listed.
const ROWS_MAX: usize = 25;
/// Width of a name, a count, a sum of times.
const NAME_WIDTH: usize = 44;
const COUNT_WIDTH: usize = 13;
const TOTAL_WIDTH: usize = 10;

/// Items taken together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Group {
    /// Operations.
    pub(crate) count: u64,
    /// Operations whose times are known, as items timed them.
    covered: f64,
    timed: u64,
    /// Nanoseconds, all together.
    pub(crate) total_ns: f64,
    squares: f64,
    min: f64,
    max: f64,
    /// Disturbed ones among the timed.
    pub(crate) disturbed: u64,
}

impl Group {
    /// Takes `item` in.
    pub(crate) fn add(&mut self, item: &Item) {
        self.count += item.count;
        self.disturbed += item.disturbed.count;
        let Some(times) = &item.times else { return };
        let weight = item.count as f64;
        self.min = if self.timed == 0 { times.min } else { self.min.min(times.min) };
        self.max = self.max.max(times.max);
        self.timed += times.n;
        self.covered += weight;
        self.total_ns += weight * times.mean;
        self.squares += weight * (times.std * times.std + times.mean * times.mean);
    }

    /// The times of all, if any are known.
    pub(crate) fn times(&self) -> Option<Stat> {
        if self.timed == 0 {
            return None;
        }
        let mean = self.total_ns / self.covered;
        let std = (self.squares / self.covered - mean * mean).max(0.0).sqrt();
        Some(Stat { n: self.timed, mean, min: self.min, max: self.max, std })
    }
}

/// The summary.
pub(crate) fn render(observed: &Observed, style: Style) -> String {
    let items = &observed.profile.items;
    let mut text = String::new();
    let mut table = |title: &str, name: &dyn Fn(&Item) -> Option<String>| {
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for item in items {
            if let Some(name) = name(item) {
                groups.entry(name).or_default().add(item);
            }
        }
        text.push_str(&rows(title, groups, style));
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
    text + &closing(observed, style)
}

/// A table, the dearest first.
fn rows(title: &str, groups: BTreeMap<String, Group>, style: Style) -> String {
    let mut groups: Vec<(String, Group)> = groups.into_iter().collect();
    groups.sort_by(|(_, a), (_, b)| b.total_ns.total_cmp(&a.total_ns).then(b.count.cmp(&a.count)));
    let mut text = String::new();
    let heads = ["mean", "min", "max", "std"].map(|head| format!("{head:>10}")).join(" ");
    let head = format!("{title:<NAME_WIDTH$} {:>COUNT_WIDTH$} {:>TOTAL_WIDTH$} {heads}", "count", "in all");
    let _ = writeln!(text, "{}", style.label(&head));
    let more = groups.len().saturating_sub(ROWS_MAX);
    for (name, group) in groups.iter().take(ROWS_MAX) {
        let _ = write!(text, "{:<NAME_WIDTH$} {:>COUNT_WIDTH$}", shortened(name), count(group.count));
        if let Some(times) = group.times() {
            let mark = if times.n < group.count { "~" } else { "" };
            let total = format!("{mark}{}", Unit::Nanoseconds.scaled(group.total_ns));
            let _ = write!(text, " {total:>TOTAL_WIDTH$} {}", times_columns(&times, times.n < group.count));
            if group.disturbed > 0 {
                let _ = write!(text, "   {} disturbed", count(group.disturbed));
            }
        }
        text.push('\n');
    }
    if more > 0 {
        let left: u64 = groups[ROWS_MAX..].iter().map(|(_, group)| group.count).sum();
        let _ = writeln!(text, "and {} more with {} operations", count(more as u64), count(left));
    }
    text.push('\n');
    text
}

/// The end of a name that is too long: what tells paths apart is there.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME_WIDTH {
        return name.to_owned();
    }
    format!("…{}", name.chars().skip(length - NAME_WIDTH + 1).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_probe::cost::{Cause, Disturbed};
    use vellum_wire::operation::{Kind, Operation};

    fn item(count: u64, mean: f64, std: f64) -> Item {
        Item {
            cause: Cause { place: Place::Unknown, via: None },
            operation: Operation::of(Kind::Free),
            count,
            times: Some(Stat { n: count.min(10), mean, min: mean - std, max: mean + std, std }),
            disturbed: Disturbed::default(),
            is_scaled: false,
        }
    }

    #[test]
    fn a_group_is_weighed_by_exact_counts() {
        let mut group = Group::default();
        group.add(&item(3, 10.0, 0.0));
        group.add(&item(1, 50.0, 0.0));
        let times = group.times().unwrap();
        assert_eq!((group.count, times.n, times.mean, times.min, times.max), (4, 4, 20.0, 10.0, 50.0));
        // Three tens and a fifty.
        assert!((times.std - 300f64.sqrt()).abs() < 1e-9);
        assert_eq!(group.total_ns, 80.0);
        assert_eq!(Group::default().times(), None);
    }

    #[test]
    fn long_names_keep_their_ends() {
        let long = format!("/a/{}/b.c", "x".repeat(80));
        assert_eq!(shortened(&long).chars().count(), NAME_WIDTH);
        assert!(shortened(&long).ends_with("/b.c"));
        assert_eq!(shortened("main"), "main");
    }
}
