//! Explains why a process's resident memory exceeds its blocks in use. The first table divides resident
//! memory by kind. The second shows, for each size class, the free memory that shares pages with blocks in
//! use. The third lists the source lines that allocated these blocks.

use super::observed::Observed;
use crate::named::name;
use serde_json::{Value, json};
use vellum_cost::ResidentClass;
use vellum_report::units::{bytes, many, size};
use vellum_report::{Figure, Moment, Parts, Table};
use vellum_wire::held::Kind;

/// Columns of a table besides its names.
pub(super) const FIGURES_WIDTH: usize = 22;
/// Size classes that are listed.
const CLASSES_SHOWN: usize = 6;

/// Each kind, its key in JSON, and its words.
const KINDS: [(Kind, &str, &str); 10] = [
    (Kind::Live, "live_bytes", "blocks in use"),
    (Kind::Holes, "holes_bytes", "free beside blocks in use"),
    (Kind::Cached, "cached_bytes", "free pages kept for reuse"),
    (Kind::Marked, "marked_bytes", "free pages the kernel may take"),
    (Kind::Tables, "tables_bytes", "the allocator's tables"),
    (Kind::Code, "code_bytes", "program and libraries"),
    (Kind::Stacks, "stacks_bytes", "stacks"),
    (Kind::Files, "files_bytes", "other files"),
    (Kind::Shared, "shared_bytes", "shared memory"),
    (Kind::Other, "other_bytes", "other memory from the kernel"),
];

/// The JSON of resident memory, if that was counted.
pub(super) fn document(observed: &Observed) -> Option<Value> {
    let (processes, resident) = observed.resident()?;
    let class = |class: &ResidentClass| json!({"block_bytes": class.block, "live_bytes": class.live, "holes_bytes": class.holes});
    let classes: Vec<Value> = resident.classes.iter().map(class).collect();
    let mut document = json!({"processes": processes, "sum_bytes": resident.sum(), "classes": classes});
    KINDS.iter().for_each(|(kind, key, _)| document[key] = resident.of(*kind).into());
    Some(document)
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 / whole.max(1) as f64 * 100.0)
}

/// The tables, with names of at most `room` columns; none if resident memory was not counted.
pub(super) fn tables(observed: &Observed, top: usize, room: usize) -> Vec<Table> {
    let Some((processes, resident)) = observed.resident() else { return Vec::new() };
    let sum = resident.sum();
    let moment = if observed.is_running() { Moment::Now } else { Moment::End };
    let of = (processes > 1).then(|| format!(", each of {}", many(processes as u64, "process")));
    let parts = KINDS.map(|(kind, _, words)| (words, resident.of(kind)));
    let all = Parts::new(Figure::Bytes, moment, sum, parts).table("resident", &of.unwrap_or_default());
    let holes = resident.of(Kind::Holes);
    if holes == 0 {
        return vec![all];
    }
    let mut beside = Table::plain(&["free beside blocks of", "bytes", "share", "in use"], 1);
    let mut classes = resident.classes;
    classes.sort_by_key(|class| std::cmp::Reverse(class.holes));
    for class in classes.iter().filter(|class| class.holes > 0).take(CLASSES_SHOWN) {
        let block = size(usize::try_from(class.block).unwrap_or(usize::MAX));
        beside.row(vec![block, bytes(class.holes), share(class.holes, holes), bytes(class.live)]);
    }
    let mut tables = vec![all, beside];
    let pinned: u64 = observed.pinned.iter().map(|(_, pins)| pins).sum();
    if pinned > 0 {
        let mut table = Table::plain(&["kept from going back by blocks of", "bytes", "share"], 1);
        for (cause, pins) in observed.pinned.iter().take(top) {
            table.row(vec![name(cause, room), bytes(*pins), share(*pins, holes)]);
        }
        let unknown = holes.saturating_sub(pinned);
        table.row(vec!["(no sample of that size in use)".to_owned(), bytes(unknown), share(unknown, holes)]);
        tables.push(table);
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_cost::Resident;

    #[test]
    fn every_kind_has_a_label_and_a_key() {
        let mut resident = Resident::default();
        for (at, (kind, _, _)) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            resident.kinds[at] = 1 << at;
            assert_eq!(resident.of(kind), 1 << at);
        }
        assert_eq!(KINDS.len(), vellum_wire::held::KINDS);
        assert_eq!(resident.sum(), (1 << KINDS.len()) - 1);
    }
}
