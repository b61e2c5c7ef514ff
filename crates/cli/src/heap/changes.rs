//! Shows the growth of the memory that each source line holds, between two moments or two saved profiles.

use super::args::{Format, Heap};
use super::json::SCHEMA;
use super::observed::{End, Level, Observed, Stacked, names};
use super::{content, outputs, write};
use crate::document::{Saved, cause};
use crate::failure::Failure;
use crate::named::{name, signed, with_more};
use crate::screen;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_cost::{Cause, Holder, Holding, Place};
use vellum_process::Function;
use vellum_report::units::{bytes, count};
use vellum_report::{Look, Report, Section, Style, Table, stdout};
use vellum_wire::held::{Amount, BLOCK, INTERVAL_USUAL};

/// Columns of a table besides its names.
const FIGURES_WIDTH: usize = 46;

/// A cause whose amount has changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    cause: Cause,
    old: Amount,
    new: Amount,
}

impl Change {
    /// The changes from `old` to `new`, the largest growth first.
    pub(super) fn between(old: Vec<(Cause, Amount)>, new: Vec<(Cause, Amount)>) -> Vec<Change> {
        let mut both: BTreeMap<Cause, [Amount; 2]> = BTreeMap::new();
        for (at, amounts) in [old, new].into_iter().enumerate() {
            for (cause, amount) in amounts {
                let sum = &mut both.entry(cause).or_default()[at];
                *sum = sum.plus(amount);
            }
        }
        let changed = both.into_iter().filter(|(_, [old, new])| old.bytes != new.bytes);
        let mut changes: Vec<Change> =
            changed.map(|(cause, [old, new])| Change { cause, old, new }).collect();
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

/// The lines that grew most, and the amount freed.
pub(super) fn text(changes: &[Change], title: &str, top: usize, look: Look) -> String {
    let mut section = Section::new();
    let mut table = Table::plain(&[title, "was", "is", "change", "blocks"], 1);
    for change in changes.iter().take(top) {
        table.row(vec![
            name(&change.cause, look.columns.saturating_sub(FIGURES_WIDTH)),
            bytes(change.old.bytes),
            bytes(change.new.bytes),
            signed(change.bytes() as f64, |size| bytes(size as u64)),
            signed(change.blocks() as f64, |blocks| count(blocks as u64)),
        ]);
    }
    let sum: i64 = changes.iter().map(Change::bytes).sum();
    section.table(table).remark(match changes.is_empty() {
        true => format!("{title}: nothing has changed"),
        false => {
            let rest = with_more(changes.len().saturating_sub(top));
            format!("{rest}in all {}", signed(sum as f64, |size| bytes(size as u64)))
        }
    });
    Report::new(None).sections([section]).text(look)
}

/// Shows the growth from one saved profile to another on standard output, and writes it to files.
pub(super) fn diff(args: &Heap, paths: [&Path; 2]) -> Result<u8, Failure> {
    let outputs = outputs(args)?;
    let both = paths.map(|path| Saved { path, schema: SCHEMA, maker: "vellum heap -o FILE.json" });
    let [old, new] = both.each_ref().map(|saved| saved.entries("sites", site));
    let sites = [old?, new?];
    let of = |sites: &[(Cause, Holding)]| {
        sites.iter().map(|(cause, holding)| (cause.clone(), args.of.of(holding))).collect()
    };
    let changes = Change::between(of(&sites[0]), of(&sites[1]));
    let shown = |style, columns| text(&changes, args.of.words(), args.top, Look::brief(style).wide(columns));
    stdout::write_all(shown(Style::of_stdout(), screen::columns()).as_bytes())?;
    if outputs.is_empty() {
        return Ok(0);
    }
    let [old, new] = both.each_ref().map(|saved| saved.entries("stacks", stack));
    let interval = both[1].document()?["interval_bytes"].as_u64();
    let observed = growth(paths, interval.unwrap_or(INTERVAL_USUAL), sites, [old?, new?]);
    write(outputs, |format| match format {
        Format::Text => Ok(shown(Style::plain(), screen::COLUMNS).into_bytes()),
        format => content(format, &observed, args),
    });
    Ok(0)
}

/// A cause without its line number, which changes when the source is edited.
fn whole_function(cause: &Cause) -> Cause {
    let mut cause = cause.clone();
    if let Place::Line { line, .. } = &mut cause.place {
        *line = 0;
    }
    cause
}

/// For each key: the last value seen, and the amounts held in the old and the new profile.
type Both<K, V> = BTreeMap<K, (V, [Holding; 2])>;

fn put<K: Ord, V>(both: &mut Both<K, V>, key: K, last: V, at: usize, holding: Holding) {
    let mut holdings = both.get(&key).map_or([Holding::default(); 2], |known| known.1);
    holdings[at] = holdings[at].plus(holding);
    both.insert(key, (last, holdings));
}

/// The growth in the form of a profile, with the lines of the new profile. Shrunken stacks hold nothing.
fn growth(
    paths: [&Path; 2],
    interval: u64,
    sites: [Vec<(Cause, Holding)>; 2],
    stacks: [Vec<Stacked>; 2],
) -> Observed {
    let (mut grown, mut by_names) = (Both::new(), Both::new());
    for (at, (sites, stacks)) in sites.into_iter().zip(stacks).enumerate() {
        for stack in stacks {
            let Some((cause, _)) = sites.get(stack.site) else { continue };
            let functions: Vec<String> = names(&stack).into_iter().map(str::to_owned).collect();
            let holding = stack.holding;
            put(&mut by_names, (whole_function(cause), functions), stack, at, holding);
        }
        for (cause, holding) in sites {
            put(&mut grown, whole_function(&cause), cause, at, holding);
        }
    }
    let grown = grown.into_iter().map(|(key, (cause, [old, new]))| (key, (cause, new.above(old))));
    let grown: Vec<_> = grown.filter(|(_, (_, holding))| *holding != Holding::default()).collect();
    let stacks = by_names.into_iter().filter_map(|((key, _), (stack, [old, new]))| {
        let site = grown.iter().position(|(site, _)| *site == key)?;
        Some(Stacked { site, holding: new.above(old), ..stack })
    });
    let stacks: Vec<_> = stacks.filter(|stack| stack.holding != Holding::default()).collect();
    let holding = stacks.iter().fold(Holding::default(), |sum, stack| sum.plus(stack.holding));
    let holders = vec![Holder { holding, ..Holder::default() }];
    let command =
        ["diff".to_owned()].into_iter().chain(paths.map(|path| path.display().to_string())).collect();
    let end = End::Looked { wall: Duration::ZERO, is_running: false };
    let notes = vec!["growth from one profile to another: what shrank is not shown".to_owned()];
    let sites = grown.into_iter().map(|(_, site)| site).collect();
    let (program, pinned, curve) = (PathBuf::new(), Vec::new(), Vec::new());
    Observed { command, program, end, interval, holders, stacks, sites, pinned, notes, curve }
}

fn site(entry: &Value) -> Option<(Cause, Holding)> {
    Some((cause(entry)?, holding(entry)?))
}

/// The amounts of an entry of a saved profile.
fn holding(entry: &Value) -> Option<Holding> {
    let amount = |key: &str| {
        let figure = |name: &str| entry["held"][key][name].as_u64();
        let blocks = figure("blocks")?.saturating_mul(BLOCK);
        Some(Amount { bytes: figure("bytes")?, blocks, samples: figure("samples")? })
    };
    Some(Holding { now: amount("end")?, peak: amount("peak")?, ever: amount("ever")? })
}

fn stack(entry: &Value) -> Option<Stacked> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let frames = entry["frames"].as_array()?;
    // Functions that are inlined into each other share one instruction.
    let is_one = |a: &Value, b: &Value| {
        !a["module"].is_null() && [&a["module"], &a["address"]] == [&b["module"], &b["address"]]
    };
    let level = |frames: &[Value]| {
        let function = |frame: &Value| Function {
            name: text(&frame["function"]),
            file: text(&frame["file"]).map(Into::into),
            line: frame["line"].as_u64().and_then(|line| line.try_into().ok()),
        };
        let module = text(&frames[0]["module"]).map(|module| Path::new(&module).into());
        let address = frames[0]["address"].as_u64()?;
        Some(Level { module, address, functions: frames.iter().map(function).collect() })
    };
    let callers = entry["callers"].as_array()?.iter().map(|label| {
        let label = label.as_str()?;
        Some((label.to_owned(), label.len()))
    });
    Some(Stacked {
        levels: frames.chunk_by(is_one).map(level).collect::<Option<_>>()?,
        holding: holding(entry)?,
        site: usize::try_from(entry["site"].as_u64()?).ok()?,
        callers: callers.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32) -> Cause {
        Cause { place: Place::Line { file: "a.c".into(), line, function: "f".into() }, via: None }
    }

    fn amount(bytes: u64) -> Amount {
        Amount { bytes, blocks: bytes / 10 * BLOCK, samples: 1 }
    }

    /// A line was inserted above two equal functions, so their line numbers differ.
    #[test]
    fn growth_is_by_function_even_if_lines_move() {
        let stack = |site, bytes| Stacked {
            levels: Vec::new(),
            holding: Holding { now: amount(bytes), ..Holding::default() },
            site,
            callers: Vec::new(),
        };
        let of = |line, bytes| (at(line), Holding { now: amount(bytes), ..Holding::default() });
        let paths = [Path::new("old"), Path::new("new")];
        let grown = |bytes| {
            let stacks = [vec![stack(0, 100)], vec![stack(0, bytes)]];
            growth(paths, 512, [vec![of(5, 100)], vec![of(6, bytes)]], stacks)
        };
        let same = grown(100);
        assert!(same.sites.is_empty() && same.stacks.is_empty(), "{same:?}");
        let more = grown(150);
        let now = Amount { bytes: 50, blocks: 5 * BLOCK, samples: 0 };
        assert_eq!(more.sites, [(at(6), Holding { now, ..Holding::default() })]);
        assert_eq!((more.interval, more.stacks.len(), more.stacks[0].holding.now), (512, 1, now));
    }

    #[test]
    fn changes_sort_from_growth_to_shrinkage() {
        let old = vec![(at(1), amount(100)), (at(2), amount(50)), (at(3), amount(70))];
        let new = vec![(at(1), amount(100)), (at(2), amount(90)), (at(4), amount(10))];
        let changes = Change::between(old, new);
        let seen: Vec<_> = changes.iter().map(|change| (change.bytes(), change.blocks())).collect();
        assert_eq!(seen, [(40, 4), (10, 1), (-70, -7)]);
        let text = text(&changes, "held", 2, Look::brief(Style::plain()));
        assert!(text.contains("f a.c:2") && text.contains("with 1 more line, in all -20 B"), "{text}");
    }
}
