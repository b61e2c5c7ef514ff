//! Section `gc` of the benchmark: Vellum's collector against libgc, on programs of `lab/papers/clients/`.
//!
//! Other sections measure malloc; this section measures garbage collection. `vellum papers smith` measures
//! larger programs of the same folder; both use [`Workshop`] to build them. Each *cell* is one program.
//! Its *arms* are the collectors: libgc and Vellum's *plans* (algorithms), each twice (a control).
//!
//! ```text
//! Workshop ──▶ cells: short, trees, lists, whole heaps, slices, markers
//!    ──▶ Campaign ──▶ sheets ──▶ tables, with a target for each judged plan
//! ```
//!
//! Both collectors have their best settings: allocation inlined, no interior pointers within the heap, one
//! marking thread. Most users of libgc call `GC_MALLOC` instead of inlining allocation. A further column,
//! without a target, has libgc with such calls. The section runs only if named (`--only gc`, or a cell of
//! it).

mod ways;

use crate::suite::{Plan, Section, table};
use crate::target::{Against, twin};
use crate::timing::Found;
use crate::topics::{Prepared, chooses};
use crate::{Arm, Cell, Line, Table, Target, Unit};
use vellum_campaign::cells;
use vellum_papers::smith::{self, Build, Collector, Workshop};
use ways::Ways;

/// The section's name, with which all its cells begin.
pub const SECTION: &str = "gc";

/// The arm in which programs call libgc instead of its inlined allocation.
const CALLED: &str = "GC_MALLOC";

const CPU: &str = "cpu_ns";
/// The client reports its own peak, since the peak measured from outside is at least this process's.
const PEAK: &str = "peak_bytes";
const OBJECT: &str = "object_ns";
const LIVE_OBJECT: &str = "live_object_ns";
/// Bounds of each judged plan over libgc: short-lived objects and whole collections, …
const OBJECTS_MAX: f64 = 0.5;
/// … time of small programs, …
const SMALL_MAX: f64 = 0.65;
/// … and memory.
const LEVEL: f64 = 1.0;
/// After nine tenths of the heap have died: bound of resident memory, as a multiple of the live bytes, and …
const RESIDENT_MAX: f64 = 1.2;
/// … the additional bytes of every process.
const RESIDENT_PLUS: f64 = 4.0 * 1048576.0;
/// The judged plans. The generational plan is measured where memory is short (`vellum papers cooper`).
const JUDGED: [smith::Plan; 2] = [smith::Plan::MarkSweep, smith::Plan::MostlyCopying];

/// A small program: its cell, its file, its words, and whether the arm [`CALLED`] is of interest.
struct Small {
    cell: &'static str,
    client: &'static str,
    words: &'static [&'static str],
    called: bool,
}

/// The small programs. None has a heap of a given size, as the memory that a collector takes is judged too.
const SMALL: [Small; 7] = [
    Small { cell: "short-16", client: "short", words: &["bytes=16"], called: true },
    Small { cell: "short-64", client: "short", words: &["bytes=64"], called: true },
    Small { cell: "trees", client: "trees", words: &[], called: false },
    Small { cell: "lists", client: "mergesort", words: &["items=100000", "sorts=20"], called: false },
    Small { cell: "whole-tree", client: "mark", words: &[], called: false },
    Small { cell: "whole-list", client: "mark", words: &["list=1"], called: false },
    Small { cell: "fall", client: "fall", words: &[], called: false },
];

/// Cells in several ways of collecting.
const WAYS: [Ways; 2] = [ways::SLICES, ways::PARALLEL];

/// Builds the clients for every collector found here.
///
/// # Errors
/// When the sources cannot be written. A missing collector is no error.
pub fn prepare(plan: &Plan, only: Option<&str>) -> anyhow::Result<Prepared> {
    let mut workshop = Workshop::new(&plan.library)?;
    let (mut here, missing) = workshop.discover();
    if here.contains(&Collector::Vellum(smith::Plan::MarkSweep)) {
        here.push(Collector::Vellum(smith::Plan::Appel));
    }
    let scale = format!("scale={}", if plan.quick { 20 } else { 100 });
    let wanted = |cell: &str| chooses(only, SECTION, &name(cell));
    let mut cells = Vec::new();
    for small in SMALL.iter().filter(|small| wanted(small.cell)) {
        let words: Vec<&str> = small.words.iter().copied().chain([scale.as_str()]).collect();
        let mut arms = arms(&mut workshop, &here, small.client, &words);
        if small.called {
            arms.extend(workshop.arm(CALLED, small.client, Collector::Libgc, Build::Call, &words));
        }
        cells.push(cell(small.cell, arms, plan.rounds));
    }
    for ways in WAYS.iter().filter(|ways| wanted(ways.cell)) {
        cells.push(ways.prepare(&mut workshop, &here, &scale, plan.rounds));
    }
    let section = Section { name: SECTION, cells, tables: tables() };
    let finish = || {
        drop(workshop);
        Ok(Found::default())
    };
    Ok(Prepared { section, missing, finish: Box::new(finish) })
}

/// The tables; lines whose cells are not run are left out.
fn tables() -> Vec<Table> {
    let against = || Against::Arm(Collector::Libgc.name());
    let each = |cell: &str, what: &str, target: Target| -> Vec<Line> {
        let line = |plan| {
            let own = Collector::Vellum(plan).name();
            Line { label: format!("{what}, {own}"), cell: name(cell), target: Some(target.clone().of(own)) }
        };
        JUDGED.map(line).to_vec()
    };
    let of = |title: &str, metric, unit, most: f64, rows: &[(&str, &str)]| {
        let lines = rows.iter().flat_map(|(cell, what)| each(cell, what, Target::at_most(most, against())));
        table(&format!("Collectors: {title}"), metric, unit, lines.collect())
    };
    let fallen = Target::at_most(RESIDENT_MAX, Against::Figure("live_bytes", RESIDENT_PLUS / RESIDENT_MAX));
    let fallen = each("fall", "nine tenths of the heap died", fallen);
    let (short_16, short_64) =
        (("short-16", "short-lived 16-byte objects"), ("short-64", "short-lived 64-byte objects"));
    let (trees, lists) = (("trees", "binary trees, 64 MiB live"), ("lists", "mergesort of a list"));
    let whole = [("whole-tree", "128 MB collected, a tree"), ("whole-list", "128 MB collected, a list")];
    let mut tables = vec![
        of("time an object", OBJECT, Unit::Nanos, OBJECTS_MAX, &[short_16, short_64]),
        of("time a live object", LIVE_OBJECT, Unit::Nanos, OBJECTS_MAX, &whole),
        of("CPU time", CPU, Unit::Millis, SMALL_MAX, &[trees, lists]),
        of("peak memory", PEAK, Unit::Mebibytes, LEVEL, &[short_16, short_64, trees, lists]),
        table("Collectors: resident memory", "resident_bytes", Unit::Mebibytes, fallen),
    ];
    tables.extend(ways::tables());
    tables
}

/// The names of all cells, for `--list`.
#[must_use]
pub fn names() -> Vec<String> {
    SMALL.iter().map(|small| small.cell).chain(WAYS.map(|ways| ways.cell)).map(name).collect()
}

fn name(cell: &str) -> String {
    format!("{SECTION}-{cell}")
}

fn cell(cell: &str, arms: Vec<Arm>, rounds: usize) -> Cell {
    cells::cell(name(cell), rounds, arms)
}

fn arms(workshop: &mut Workshop, here: &[Collector], client: &str, words: &[&str]) -> Vec<Arm> {
    let labels = here.iter().flat_map(|collector| {
        let label = collector.name();
        [(label.to_owned(), *collector), (twin(label), *collector)]
    });
    labels
        .filter_map(|(label, collector)| workshop.arm(&label, client, collector, Build::Plain, words))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_cell() {
        let names = names();
        for line in tables().iter().flat_map(|table| &table.lines) {
            assert!(names.contains(&line.cell), "{}", line.cell);
        }
        assert!(SMALL.iter().all(|small| names.contains(&name(small.cell))));
    }
}
