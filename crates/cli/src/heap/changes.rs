//! What has grown between two moments: of a process that is looked at, or of two saved profiles.

use super::args::{Heap, When};
use super::json::SCHEMA;
use crate::document::{Saved, cause};
use crate::failure::Failure;
use crate::named::name;
use crate::screen;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use vellum_cost::Cause;
use vellum_report::units::{bytes, count, many};
use vellum_report::{Style, Table, stdout};
use vellum_wire::held::{Amount, BLOCK};

/// Columns of a table beside its names.
const FIGURES_WIDTH: usize = 46;

/// A cause whose amount has changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    cause: Cause,
    old: Amount,
    new: Amount,
}

impl Change {
    /// What has changed from `old` to `new`, most growth first.
    pub(super) fn between(old: Vec<(Cause, Amount)>, new: Vec<(Cause, Amount)>) -> Vec<Change> {
        let mut both: BTreeMap<Cause, [Amount; 2]> = BTreeMap::new();
        for (at, amounts) in [old, new].into_iter().enumerate() {
            for (cause, amount) in amounts {
                let sum = &mut both.entry(cause).or_default()[at];
                *sum = sum.plus(amount);
            }
        }
        let mut changes: Vec<Change> = both
            .into_iter()
            .filter(|(_, [old, new])| old.bytes != new.bytes)
            .map(|(cause, [old, new])| Change { cause, old, new })
            .collect();
        changes.sort_by_key(|change| Reverse(change.bytes()));
        changes
    }

    fn bytes(&self) -> i64 {
        self.new.bytes.cast_signed().wrapping_sub(self.old.bytes.cast_signed())
    }

    fn blocks(&self) -> i64 {
        let blocks = |amount: Amount| (amount.blocks / BLOCK).cast_signed();
        blocks(self.new) - blocks(self.old)
    }
}

/// The lines that grew most, and how much became free.
pub(super) fn table(changes: &[Change], title: &str, top: usize, width: usize, style: Style) -> String {
    if changes.is_empty() {
        return format!("\n{title}: nothing has changed\n");
    }
    let mut table = Table::plain(&[title, "was", "is", "change", "blocks"], 1);
    for change in changes.iter().take(top) {
        table.row(vec![
            name(&change.cause, width.saturating_sub(FIGURES_WIDTH)),
            bytes(change.old.bytes),
            bytes(change.new.bytes),
            signed(change.bytes(), bytes),
            signed(change.blocks(), count),
        ]);
    }
    let mut text = format!("\n{}", table.render("", width, style));
    let sum = changes.iter().map(Change::bytes).sum();
    let rest = changes.len().saturating_sub(top);
    let rest = if rest > 0 { format!("with {}, ", many(rest as u64, "more line")) } else { String::new() };
    text += &format!("{rest}in all {}\n", signed(sum, bytes));
    text
}

fn signed(value: i64, shown: fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "+" };
    format!("{sign}{}", shown(value.unsigned_abs()))
}

/// Shows what has grown from one saved profile to the other, on standard output.
pub(super) fn diff(args: &Heap, old: &Path, new: &Path) -> Result<u8, Failure> {
    let [old, new] = [old, new].map(|path| sites(path, args.of));
    let changes = Change::between(old?, new?);
    let text = table(&changes, args.of.words(), args.top, screen::columns(), Style::of_stdout());
    stdout::write_all(text.trim_start().as_bytes())?;
    Ok(0)
}

/// What the lines of a saved profile hold.
fn sites(path: &Path, when: When) -> Result<Vec<(Cause, Amount)>, Failure> {
    let saved = Saved { path, schema: SCHEMA, maker: "vellum heap -o FILE.json" };
    saved.entries("sites", |entry| site(entry, when)).map_err(Failure::of)
}

fn site(entry: &Value, when: When) -> Option<(Cause, Amount)> {
    let key = match when {
        When::Peak => "peak",
        When::End => "end",
        When::Ever => "ever",
    };
    let figure = |name: &str| entry["held"][key][name].as_u64();
    let amount = Amount {
        bytes: figure("bytes")?,
        blocks: figure("blocks")?.saturating_mul(BLOCK),
        samples: figure("samples")?,
    };
    Some((cause(entry)?, amount))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_cost::Place;

    fn at(line: u32) -> Cause {
        Cause { place: Place::Line { file: "a.c".into(), line, function: "f".into() }, via: None }
    }

    fn amount(bytes: u64) -> Amount {
        Amount { bytes, blocks: bytes / 10 * BLOCK, samples: 1 }
    }

    #[test]
    fn growth_comes_first_and_what_is_gone_last() {
        let old = vec![(at(1), amount(100)), (at(2), amount(50)), (at(3), amount(70))];
        let new = vec![(at(1), amount(100)), (at(2), amount(90)), (at(4), amount(10))];
        let changes = Change::between(old, new);
        let seen: Vec<_> = changes.iter().map(|change| (change.bytes(), change.blocks())).collect();
        assert_eq!(seen, [(40, 4), (10, 1), (-70, -7)]);
        let text = table(&changes, "held", 2, 80, Style::plain());
        assert!(text.contains("f a.c:2") && text.contains("with 1 more line, in all -20 B"), "{text}");
    }

    #[test]
    fn sites_are_read_as_they_are_written() {
        let entry = serde_json::json!({
            "place": {"kind": "line", "file": "a.c", "line": 7, "function": "f"}, "via": null,
            "held": {"end": {"bytes": 100, "blocks": 10, "samples": 1}},
        });
        assert_eq!(site(&entry, When::End), Some((at(7), amount(100))));
        assert_eq!(site(&entry, When::Peak), None);
    }
}
