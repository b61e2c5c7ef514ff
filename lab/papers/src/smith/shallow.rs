//! Smith 1998, section 3.3 (Pia): collecting while the stack is shallow, against collecting wherever memory
//! runs out.
//!
//! Pia's stack swings between a hundred frames and a thousand, and objects reached from a deep one are kept,
//! pinned and traced. The paper's collector tried to collect while the stack was shallow, by a heuristic that
//! the paper does not describe. The paper explains a jump of collector time by a heap too small for the
//! heuristic. Here the client requests these collections (`clients/heap_shallow.h`): in the last eighth of
//! the free memory, while the stack is at most a quarter as deep as it was. Knuth-Bendix, whose stack is deep
//! most of the time, is shown for comparison.

use super::client::{CLIENTS, Client};
use super::lab::{Lab, keep};
use crate::cells::{cell, middle, ratio, sheet, twin};
use crate::workshop::{Build, Collector};
use crate::{Finding, Table, Value};
use vellum_campaign::Sheet;

/// The clients with deep stacks, and their heaps in MiB. The paper shows Pia's jump at 4 MB, and an effect of
/// the heuristic from 8 MB on.
const PLACES: &[(&str, u64)] = &[("pia", 4), ("pia", 8), ("pia", 16), ("kb", 16), ("kb", 32)];
const PLACES_QUICK: &[(&str, u64)] = &[("pia", 4), ("pia", 8), ("kb", 16)];
const PLACES_TINY: &[(&str, u64)] = &[("pia", 8)];

/// The word with which a client checks its stack but collects wherever memory runs out …
const ANYWHERE: &str = "shallow=0";
/// … or while the stack is shallow.
const SHALLOW: &str = "shallow=1";

const NANOS: f64 = 1e9;
const KIB: f64 = 1024.0;

/// The arm of a plan that collects while the stack is shallow.
fn shallow(plan: Collector) -> String {
    format!("{}_shallow", plan.name())
}

fn name(client: &Client, mib: u64) -> String {
    format!("{}-{mib}", client.name)
}

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let rounds = lab.scale.pick(7, 3, 1);
    let places = lab.scale.pick(PLACES, PLACES_QUICK, PLACES_TINY);
    let places: Vec<(&Client, u64)> = places
        .iter()
        .filter_map(|(name, mib)| Some((CLIENTS.iter().find(|client| client.name == *name)?, *mib)))
        .collect();
    let mut cells = Vec::new();
    for (client, mib) in &places {
        let mut arms = Vec::new();
        for plan in lab.plans() {
            for (label, word) in
                [(plan.name().to_owned(), ANYWHERE), (twin(plan.name()), ANYWHERE), (shallow(plan), SHALLOW)]
            {
                arms.extend(lab.arm_with(&label, client, plan, Build::Plain, *mib, &[word]));
            }
        }
        cells.push(cell(name(client, *mib), rounds, arms));
    }
    let sheets = lab.campaign(&cells);
    let mut finding = lab.finding(
        "Collecting where the stack is shallow",
        "section 3.3, Pia",
        "Published: collector time jumps at 4 MB, because Pia's stack swings between a hundred frames and a thousand; the heuristic that tries \
         to collect when it is shallow has too little leeway for that below 8 MB.",
    );
    finding.tables = vec![times(lab, &sheets, &places), counts(lab, &sheets, &places)];
    finding.notes.push(
        "anywhere: wherever room runs out. shallow: asked for by the client where its stack is at most a quarter as deep as it was, in the last \
         eighth of the room; where it is not shallow in time, collections come by themselves. Averages are of collections; what lives is what the collection found"
            .into(),
    );
    keep(&mut finding, &sheets);
    finding
}

fn times(lab: &Lab<'_>, sheets: &[Sheet], places: &[(&Client, u64)]) -> Table {
    let mut table = Table::new(
        "Time, client + collector",
        &[
            ("client", "client"),
            ("heap_mib", "heap|MiB"),
            ("published_mcc_gc_s", "1998: MCC|GC, s"),
            ("plan", "plan"),
            ("anywhere_s", "anywhere|client + GC, s"),
            ("shallow_s", "shallow|client + GC, s"),
            ("total_ratio", "shallow / anywhere|total [95 %]"),
            ("collector_ratio", "|collector [95 %]"),
            ("control_ratio", "A/A|total [95 %]"),
        ],
    );
    for (client, mib) in places {
        let published = client.published.times.iter().find(|row| row.0 == *mib);
        let published = published.and_then(|row| row.2).map(|(_, collector)| collector);
        for plan in lab.plans() {
            let here = sheet(sheets, &name(client, *mib));
            let split = |arm: &str| {
                let (cpu, collector) = (middle(here?, arm, "cpu_ns")?, middle(here?, arm, "collector_ns")?);
                let collector = collector.min(cpu);
                Some(format!("{:.3} + {:.3}", (cpu - collector) / NANOS, collector / NANOS))
            };
            let over = |arm: &str, metric| ratio(here?, (arm, metric), (plan.name(), metric), lab.seed);
            let text = |text: Option<String>| text.map_or(Value::Nothing, Value::Text);
            table.rows.push(vec![
                Value::text(client.title),
                Value::Count(*mib as usize),
                Value::of(published),
                Value::text(plan.name()),
                text(split(plan.name())),
                text(split(&shallow(plan))),
                Value::ratio(over(&shallow(plan), "cpu_ns")),
                Value::ratio(over(&shallow(plan), "collector_ns")),
                Value::ratio(over(&twin(plan.name()), "cpu_ns")),
            ]);
        }
    }
    table
}

/// The figures of both ways: key, head, metric, unit, and whether it is a sum over the collections.
const COUNTS: [(&str, &str, &str, f64, bool); 5] = [
    ("collections", "GCs", "collections", 1.0, false),
    ("stack_kib", "stack|KiB", "depth_bytes", KIB, false),
    ("roots", "roots", "roots_found", 1.0, true),
    ("live_kib", "alive|KiB", "live_bytes_mean", KIB, false),
    ("promoted_free_kib", "lost|KiB", "promoted_free_bytes", KIB, true),
];

fn counts(lab: &Lab<'_>, sheets: &[Sheet], places: &[(&Client, u64)]) -> Table {
    let mut columns = vec![
        ("client".to_owned(), "client".to_owned()),
        ("heap_mib".into(), "heap|MiB".into()),
        ("plan".into(), "plan".into()),
        ("asked".into(), "asked|for".into()),
    ];
    for (key, head, ..) in COUNTS {
        let (first, second) = head.split_once('|').unwrap_or((head, "any"));
        columns.push((format!("anywhere_{key}"), format!("{first}|{second}")));
        columns.push((format!("shallow_{key}"), "|shallow".to_owned()));
    }
    let columns: Vec<(&str, &str)> =
        columns.iter().map(|(key, head)| (key.as_str(), head.as_str())).collect();
    let mut table = Table::new("A collection, anywhere | where the stack is shallow", &columns);
    for (client, mib) in places {
        for plan in lab.plans() {
            let here = sheet(sheets, &name(client, *mib));
            let figure = |arm: &str, metric: &str| middle(here?, arm, metric);
            let mut row = vec![
                Value::text(client.title),
                Value::Count(*mib as usize),
                Value::text(plan.name()),
                Value::of(figure(&shallow(plan), "asked")),
            ];
            for (_, _, metric, unit, is_sum) in COUNTS {
                for arm in [plan.name().to_owned(), shallow(plan)] {
                    let of = if is_sum { figure(&arm, "collections") } else { Some(1.0) };
                    let of = of.filter(|count| *count > 0.0);
                    row.push(Value::of(figure(&arm, metric).zip(of).map(|(sum, of)| sum / unit / of)));
                }
            }
            table.rows.push(row);
        }
    }
    table
}
