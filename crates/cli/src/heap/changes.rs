//! What has grown between two moments: of a process that is looked at, or of two saved profiles.

use super::args::{Heap, When};
use super::json::SCHEMA;
use super::tables::name;
use crate::failure::Failure;
use crate::screen;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vellum_cost::{Cause, Place};
use vellum_report::units::{bytes, count, many};
use vellum_report::{Style, Table, stdout};
use vellum_wire::held::{Amount, BLOCK};

/// Columns of a table beside its names.
const FIGURES_WIDTH: usize = 46;

/// A file is no profile.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}; name two files that `vellum heap -o FILE.json` wrote", .path.display())]
struct NoProfile {
    path: PathBuf,
    what: String,
}

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
    let title = match args.of {
        When::Peak => "held at the peak",
        When::End => "held at the end",
        When::Ever => "allocated in all",
    };
    let text = table(&changes, title, args.top, screen::columns(), Style::of_stdout());
    stdout::write_all(text.trim_start().as_bytes())?;
    Ok(0)
}

/// What the lines of a saved profile hold.
fn sites(path: &Path, when: When) -> Result<Vec<(Cause, Amount)>, Failure> {
    let failed = |what: String| Failure::of(NoProfile { path: path.to_path_buf(), what });
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let document: Value = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
    if document["schema"] != SCHEMA {
        return Err(failed(format!("it has not the schema {SCHEMA}")));
    }
    let sites = document["sites"].as_array();
    let sites = sites.ok_or_else(|| failed("it has no sites".to_owned()))?.iter();
    sites
        .map(|entry| site(entry, when).ok_or_else(|| failed(format!("what is this site: {entry}?"))))
        .collect()
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
    let place = &entry["place"];
    let text = |name: &str| place[name].as_str().map(Into::into);
    let place = match place["kind"].as_str()? {
        "line" => Place::Line {
            file: text("file")?,
            line: place["line"].as_u64()?.try_into().ok()?,
            function: text("function")?,
        },
        "function" => Place::Function { module: text("module")?, function: text("function")? },
        "offset" => Place::Offset { module: text("module")?, offset: place["offset"].as_u64()? },
        "unknown" => Place::Unknown,
        _ => return None,
    };
    Some((Cause { place, via: entry["via"].as_str().map(Into::into) }, amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(line: u32) -> Cause {
        Cause { place: Place::Line { file: "a.c".into(), line, function: "f".into() }, via: None }
    }

    fn amount(bytes: u64) -> Amount {
        Amount { bytes, blocks: bytes / 10 * BLOCK, samples: 1 }
    }

    #[test]
    fn growth_comes_first_and_what_is_gone_last() {
        let old = vec![(cause(1), amount(100)), (cause(2), amount(50)), (cause(3), amount(70))];
        let new = vec![(cause(1), amount(100)), (cause(2), amount(90)), (cause(4), amount(10))];
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
        assert_eq!(site(&entry, When::End), Some((cause(7), amount(100))));
        assert_eq!(site(&entry, When::Peak), None);
    }
}
