//! Douglas 2011, the abstract's two claims: allocating 8 MB is ten times quicker, and resizing 128 KB to 256
//! KB is four and a half times faster.
//!
//! The paper compares with its system's allocator, which requested each block from the kernel. The first
//! baseline is therefore the kernel itself (`mmap`, `mremap`), the second today's glibc. The other
//! allocators are also shown.

use super::bench::Bench;
use crate::clock::UNIT;
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use vellum_campaign::cells::{cell, control, middle, ratio, sheet};
use vellum_campaign::{GLIBC, VELLUM};
use vellum_measure::Interval;

const SYSTEM: &str = "system";
/// The noise allowed in "not slower than glibc".
const NOISE: f64 = 1.02;

/// An operation, the figure of it, its name in the table, and the published result.
const LINES: [(&str, &str, &str, Option<f64>); 6] = [
    ("allocate", "used_cycles", "8 MiB: allocate, touch, free", Some(10.0)),
    ("allocate", "call_cycles", "8 MiB: the calls alone", None),
    ("allocate", "first_cycles", "8 MiB: a process's first block", None),
    ("resize", "used_cycles", "128 to 256 KiB: resize, touch", Some(4.5)),
    ("resize", "call_cycles", "128 to 256 KiB: the call alone", None),
    ("resize", "first_cycles", "128 to 256 KiB: a process's first", None),
];

pub(super) fn run(bench: &mut Bench<'_>) -> Finding {
    let (rounds, times) = bench.scale.pick((15, 101), (7, 41), (1, 3));
    let cells: Vec<_> = ["allocate", "resize"]
        .iter()
        .map(|op| {
            let params = |source: &str| {
                [("op", (*op).to_owned()), ("source", source.to_owned()), ("times", usize::to_string(&times))]
            };
            let mut arms = bench.arms_of_peers("claim", &params("malloc"));
            arms.push(bench.arm(SYSTEM, "claim", &params("system")));
            cell(*op, rounds, arms)
        })
        .collect();
    let sheets = bench.campaign(&cells);

    let names: Vec<&str> = [SYSTEM].into_iter().chain(bench.peers().iter().map(|peer| peer.name)).collect();
    let mut columns = vec![("operation", "operation")];
    columns.extend(names.iter().map(|name| (*name, *name)));
    columns.extend([
        ("published", "published|faster by"),
        ("system_over_vellum", "system /|vellum [95 %]"),
        ("glibc_over_vellum", "glibc /|vellum [95 %]"),
    ]);
    let mut table = Table::new(&format!("The abstract's claims, {UNIT}"), &columns);
    let mut goals = Vec::new();
    let mut bars: Vec<Vec<(f64, f64)>> = vec![Vec::new(); names.len()];
    for (place, (op, metric, label, published)) in LINES.iter().enumerate() {
        let sheet = sheet(&sheets, op);
        let over = |above: &str| ratio(sheet?, (above, metric), (VELLUM, metric), bench.seed);
        let value = |arm: &str| sheet.and_then(|sheet| middle(sheet, arm, metric));
        let mut row = vec![Value::text(*label)];
        row.extend(names.iter().map(|name| Value::of(value(name))));
        row.extend([Value::of(*published), Value::ratio(over(SYSTEM)), Value::ratio(over(GLIBC))]);
        table.rows.push(row);
        for (points, name) in bars.iter_mut().zip(&names) {
            points.extend(value(name).map(|cycles| (place as f64, cycles)));
        }
        if let Some(claim) = published {
            let what = format!("{label}, the system's time over Vellum's");
            goals.push(Goal::within(what, "x", Bound::AtLeast(*claim), over(SYSTEM)));
            let slower = over(GLIBC).map(|i| Interval {
                estimate: 1.0 / i.estimate,
                low: 1.0 / i.high,
                high: 1.0 / i.low,
            });
            let what = format!("{label}, Vellum's time over glibc's");
            goals.push(Goal::within(what, "x", Bound::AtMost(NOISE), slower));
        }
    }
    let short = ["8 MiB used", "8 MiB calls", "8 MiB first", "resize used", "resize call", "resize first"];
    let figure = Figure {
        name: "douglas-claims".into(),
        title: "The abstract's claims".into(),
        x: Axis::Names("operation".into(), short.map(str::to_owned).to_vec()),
        y: Axis::Log(UNIT.into()),
        series: names.iter().zip(bars).map(|(name, points)| Series::bars(*name, points)).collect(),
    };
    let notes =
        bench.missing().iter().map(|missing| format!("{} is not here: {}", missing.name, missing.cure));
    let mut finding = Finding {
        tables: vec![table],
        goals,
        figures: vec![figure],
        ..Finding::new(
            "claims",
            "The abstract's two claims",
            "abstract",
            "Published: allocating 8 MB is 10 times quicker than by a conventional allocator, resizing 128 KB to 256 KB \
            4.5 times.",
            notes.collect(),
        )
    };
    for sheet in &sheets {
        finding
            .notes
            .extend([GLIBC, VELLUM].iter().filter_map(|arm| control(sheet, arm, "used_cycles", bench.seed)));
    }
    finding.notes.push(
        "but for the first ones these are medians within a process; glibc keeps such blocks after the first"
            .into(),
    );
    finding.keep(&sheets);
    finding
}
