//! Douglas 2011, Figure 5: the cost of a block against its size, 4 KiB to 1 MiB, for the system's page
//! allocator and the user-mode page allocator.
//!
//! "Adjusted" subtracts the cost of writing resident pages (a retained block of the same size). The rest is
//! the allocator's cost: faults for the system's, bookkeeping for ours. The calls alone, without writes in
//! between, show the bookkeeping without the stores left in the processor's queues.

use super::bench::Bench;
use crate::clock::UNIT;
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use vellum_campaign::Sheet;
use vellum_campaign::cells::{cell, middle, ratio, sheet};
use vellum_measure::Interval;
use vellum_report::units::size;

const METHODS: [&str; 3] = ["paged", "warm", "retained"];

pub(super) fn run(bench: &mut Bench<'_>) -> Finding {
    let sizes: Vec<usize> = match bench.scale.pick(0, 0, 1) {
        0 => (12..=20).map(|power| 1usize << power).collect(),
        _ => vec![4 << 10, 1 << 20],
    };
    let (rounds, times) = bench.scale.pick((11, 1000), (5, 60), (1, 5));
    let cells: Vec<_> = sizes
        .iter()
        .map(|bytes| {
            let params = |method: &str| {
                [("method", method.to_owned()), ("bytes", bytes.to_string()), ("times", times.to_string())]
            };
            let arms = METHODS.iter().map(|method| bench.arm(method, "block", &params(method)));
            cell(size(*bytes), rounds, arms.collect())
        })
        .collect();
    let sheets = bench.campaign(&cells);
    let total = |bytes: usize, method: &str| middle(sheet(&sheets, &size(bytes))?, method, "total_cycles");
    let calls = |bytes: usize, method: &str| middle(sheet(&sheets, &size(bytes))?, method, "call_cycles");
    // A cost that is not larger than the cost of writing cannot be distinguished from zero.
    let adjusted = |bytes: usize, method: &str| {
        let above = total(bytes, method)? - total(bytes, "retained")?;
        (above > 0.0).then_some(above)
    };

    let mut table = Table::new(
        &format!("Figure 5: allocate, write one byte of every page, free; {UNIT} a block"),
        &[
            ("block", "block"),
            ("system", "system"),
            ("user_mode", "user mode"),
            ("system_over_user_mode", "system / user mode|[95 %]"),
            ("system_adjusted", "adjusted|system"),
            ("user_mode_adjusted", "|user mode"),
            ("adjusted_ratio", "|ratio"),
            ("system_calls", "calls alone|system"),
            ("user_mode_calls", "|user mode"),
        ],
    );
    for bytes in &sizes {
        let (system, ours) = (adjusted(*bytes, "paged"), adjusted(*bytes, "warm"));
        table.rows.push(vec![
            Value::text(size(*bytes)),
            Value::of(total(*bytes, "paged")),
            Value::of(total(*bytes, "warm")),
            Value::ratio(faster(&sheets, *bytes, bench.seed)),
            Value::of(system),
            Value::of(ours),
            Value::of(system.zip(ours).map(|(system, ours)| system / ours)),
            Value::of(calls(*bytes, "paged")),
            Value::of(calls(*bytes, "warm")),
        ]);
    }

    let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
    let growth = calls(first, "warm").zip(calls(last, "warm")).map(|(small, large)| large / small);
    let mut goals = vec![Goal::of(
        format!("allocating and freeing alone, {} over {}", size(last), size(first)),
        "x",
        Bound::AtMost(2.0),
        growth,
    )];
    goals.extend(sizes.iter().map(|bytes| {
        let what = format!("{} system over user mode", size(*bytes));
        Goal::within(what, "x", Bound::AtLeast(1.0), faster(&sheets, *bytes, bench.seed))
    }));

    let points = |of: &dyn Fn(usize) -> Option<f64>| {
        sizes.iter().filter_map(|bytes| Some((*bytes as f64, of(*bytes)?))).collect()
    };
    let figure = Figure {
        name: "douglas-figure5",
        title: "Figure 5: scaling with block size".into(),
        x: Axis::Bytes("block size".into()),
        y: Axis::Log(format!("{UNIT} a block")),
        series: vec![
            Series::line("system", points(&|bytes| total(bytes, "paged"))),
            Series::line("user mode", points(&|bytes| total(bytes, "warm"))),
            Series::line("system, adjusted", points(&|bytes| adjusted(bytes, "paged"))),
            Series::line("user mode, adjusted", points(&|bytes| adjusted(bytes, "warm"))),
            Series::line("user mode, calls alone", points(&|bytes| calls(bytes, "warm"))),
        ],
    };
    let mut finding = Finding {
        tables: vec![table],
        goals,
        figures: vec![figure],
        ..Finding::new(
            "scaling",
            "How allocation scales with block size",
            "Figure 5",
            "Published: the system's page allocator grows with the block; the user mode one, writing aside, does not \
            (a plot without figures).",
            vec![
                "adjusted: less what writing a retained block costs; nothing is shown where nothing is left"
                    .into(),
            ],
        )
    };
    finding.keep(&sheets);
    finding
}

fn faster(sheets: &[Sheet], bytes: usize, seed: u64) -> Option<Interval> {
    ratio(sheet(sheets, &size(bytes))?, ("paged", "total_cycles"), ("warm", "total_cycles"), seed)
}
