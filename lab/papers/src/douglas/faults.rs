//! Douglas 2011, Figures 3 to 5 and Table 1: the cost of a page, with and without faults, and of a block by
//! its size.
//!
//! The paper allocates a block, writes one byte of every page and frees it. Pages either fault in at the
//! write or are resident when the call returns. Its Table 1 has the cost of the writing alone, its Figure
//! 3 that of all three steps. This file measures both, also for huge pages, one reused block, and Vellum's
//! page layer, with its cache of frames full ("warm") and empty ("cold").
//!
//! Figure 5 compares the kernel's page allocator with the user-mode one, for blocks up to 1 MiB. In its
//! "adjusted" costs, the cost of writing to a reused, resident block of that size is already subtracted.
//! The rest is the allocator's cost: faults for the kernel's allocator, bookkeeping for ours. The calls
//! are also timed without writes in between, so that no stores wait in the processor's queues.

use super::bench::Bench;
use crate::clock::UNIT;
use crate::finding::table_by;
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use vellum_campaign::cells::{cell, middle, ratio, sheet};
use vellum_campaign::worker::area::PAGE;
use vellum_campaign::{Cell, Sheet};
use vellum_report::units::size;

/// The methods of the work `block`, and their names here.
const METHODS: [(&str, &str); 6] = [
    ("paged", "paged"),
    ("populated", "non-paged (MAP_POPULATE)"),
    ("huge", "huge pages"),
    ("retained", "retained (the floor)"),
    ("cold", "Vellum cold"),
    ("warm", "Vellum warm"),
];

/// Table 1: size, Windows paged and non-paged, Linux paged and non-paged; cycles per page.
const TABLE_1: [(usize, [f64; 4]); 4] = [
    (16 << 10, [2367.0, 14.51, 2847.0, 15.83]),
    (1 << 20, [2286.0, 81.37, 3275.0, 14.53]),
    (16 << 20, [2994.0, 216.2, 6353.0, 113.4]),
    (512 << 20, [2841.0, 229.9, 6597.0, 115.9]),
];

/// The largest block of Figure 5.
const SCALING_TO: usize = 1 << 20;
/// The least size for the goal of warm blocks.
const WARM_FROM: usize = 256 << 10;
/// The least size for the goal of cold blocks.
const COLD_FROM: usize = 4 << 20;

pub(super) fn run(bench: &mut Bench<'_>) -> Finding {
    let powers = |step: usize, last: u32| (12..=last).step_by(step).map(|power| 1usize << power);
    let sizes: Vec<usize> = match bench.scale.pick(0, 1, 2) {
        0 => powers(1, 30).collect(),
        1 => powers(1, 20).chain((22..=26).step_by(2).map(|power| 1 << power)).chain([512 << 20]).collect(),
        _ => vec![4 << 10, 16 << 10, 4 << 20],
    };
    let (sizes, short) = bench.affordable(&sizes, 1);
    let rounds = bench.scale.pick(7, 3, 1);
    // Every process touches about as many bytes, within limits: small blocks often, the largest a few times.
    let budget = bench.scale.pick(1 << 30, 128 << 20, 1 << 20);
    let times = |bytes: usize| (budget / bytes).clamp(bench.scale.pick(3, 2, 1), 400).to_string();
    let cells: Vec<_> = sizes
        .iter()
        .map(|bytes| {
            let params = |method: &str| {
                [("method", method.to_owned()), ("bytes", bytes.to_string()), ("times", times(*bytes))]
            };
            let arms = METHODS.iter().map(|(method, _)| bench.arm(method, "block", &params(method)));
            Cell { prepare: bench.backing(*bytes), ..cell(size(*bytes), rounds, arms.collect()) }
        })
        .collect();
    let sheets = bench.campaign(&cells);
    let view = View { sizes: &sizes, sheets: &sheets, seed: bench.seed };
    let mut finding = Finding {
        tables: vec![view.table_1(), view.totals(), view.scaling()],
        goals: view.goals(),
        figures: vec![view.figure_3(), view.figure_4(), view.figure_5()],
        ..Finding::new(
            "faults",
            "What a page costs, paged and not",
            "Figures 3 to 5, Table 1",
            "Published: faults make a first touch cost 2800 to 6600 cycles a page instead of 15 to 230, and the whole \
            allocation up to 125 % (Windows) or 36 % (Linux) dearer; \"first time page access latencies are improved tenfold\". The system's page allocator grows with the block; the \
            user mode one, writing aside, does not (a plot without figures).",
            short.into_iter().collect(),
        )
    };
    finding.notes.push(
        "cold blocks are new to the process: frames come from the kernel, by huge pages where the page layer asks for them".into(),
    );
    finding.notes.push(
        "adjusted: less what writing a retained block costs; nothing is shown where nothing is left".into(),
    );
    finding.keep(&sheets);
    finding
}

struct View<'s> {
    sizes: &'s [usize],
    sheets: &'s [Sheet],
    seed: u64,
}

impl View<'_> {
    fn of(&self, bytes: usize) -> Option<&Sheet> {
        sheet(self.sheets, &size(bytes))
    }

    /// The median of a part of the cost, for one page.
    fn a_page(&self, bytes: usize, method: &str, part: &str) -> Option<f64> {
        Some(middle(self.of(bytes)?, method, part)? / (bytes / PAGE) as f64)
    }

    fn table_1(&self) -> Table {
        let then = |bytes: usize, at: usize| {
            Value::of(TABLE_1.iter().find(|(size, _)| *size == bytes).map(|(_, values)| values[at]))
        };
        let here = |bytes: usize, method: &str| Value::of(self.a_page(bytes, method, "touch_cycles"));
        table_by(
            &format!("Table 1: writing one byte of every page, {UNIT} a page"),
            self.sizes,
            &[
                ("block", "block", &|bytes| Value::text(size(*bytes))),
                ("published_windows_paged", "published|Windows|paged", &|bytes| then(*bytes, 0)),
                ("published_windows_non_paged", "|non-|paged", &|bytes| then(*bytes, 1)),
                ("published_linux_paged", "published|Linux|paged", &|bytes| then(*bytes, 2)),
                ("published_linux_non_paged", "|non-|paged", &|bytes| then(*bytes, 3)),
                ("paged", "here|Linux|paged", &|bytes| here(*bytes, "paged")),
                ("populated", "|non-|paged", &|bytes| here(*bytes, "populated")),
                ("huge", "|huge|pages", &|bytes| here(*bytes, "huge")),
                ("retained", "||retained", &|bytes| here(*bytes, "retained")),
                ("cold", "|Vellum|cold", &|bytes| here(*bytes, "cold")),
                ("warm", "|Vellum|warm", &|bytes| here(*bytes, "warm")),
            ],
        )
    }

    fn totals(&self) -> Table {
        let cost = |bytes: usize, method: &str| Value::of(self.a_page(bytes, method, "total_cycles"));
        let over = |bytes: usize, above: &str, below: &str| Value::ratio(self.over(bytes, above, below));
        let calls = |bytes: usize, method: &str| Value::of(self.calls(bytes, method));
        let overhead = |bytes: usize| self.overhead(bytes).map_or(Value::Nothing, Value::Percent);
        table_by(
            &format!("Allocating, writing and freeing, {UNIT} a page"),
            self.sizes,
            &[
                ("block", "block", &|bytes| Value::text(size(*bytes))),
                ("paged", "paged", &|bytes| cost(*bytes, "paged")),
                ("populated", "non-|paged", &|bytes| cost(*bytes, "populated")),
                ("overhead_percent", "overhead of paging|(published: <= 36 %)", &|bytes| overhead(*bytes)),
                ("huge", "huge|pages", &|bytes| cost(*bytes, "huge")),
                ("retained", "retained|(floor)", &|bytes| cost(*bytes, "retained")),
                ("cold", "Vellum|cold", &|bytes| cost(*bytes, "cold")),
                ("warm", "Vellum|warm", &|bytes| cost(*bytes, "warm")),
                ("warm_calls_cycles", "Vellum warm|calls alone|a block", &|bytes| calls(*bytes, "warm")),
                ("warm_over_floor", "warm / floor|[95 %]", &|bytes| over(*bytes, "warm", "retained")),
                ("paged_over_cold", "paged / cold|[95 %]", &|bytes| over(*bytes, "paged", "cold")),
                ("paged_over_warm", "paged / warm|[95 %]", &|bytes| over(*bytes, "paged", "warm")),
            ],
        )
    }

    fn over(&self, bytes: usize, above: &str, below: &str) -> Option<vellum_measure::Interval> {
        ratio(self.of(bytes)?, (above, "total_cycles"), (below, "total_cycles"), self.seed)
    }

    /// The cost of paging over populating, minus 1, in percent.
    fn overhead(&self, bytes: usize) -> Option<f64> {
        Some((self.over(bytes, "paged", "populated")?.estimate - 1.0) * 100.0)
    }

    fn goals(&self) -> Vec<Goal> {
        let mut goals = Vec::new();
        let from = |least: usize| self.sizes.iter().copied().filter(move |bytes| *bytes >= least);
        for bytes in from(WARM_FROM) {
            let what = format!("{} warm over the floor", size(bytes));
            goals.push(Goal::within(what, "x", Bound::AtMost(1.3), self.over(bytes, "warm", "retained")));
        }
        for bytes in from(COLD_FROM) {
            let what = format!("{} paged over cold", size(bytes));
            goals.push(Goal::within(what, "x", Bound::AtLeast(5.0), self.over(bytes, "paged", "cold")));
        }
        for bytes in from(16 << 10) {
            let touch = self
                .of(bytes)
                .and_then(|s| ratio(s, ("paged", "touch_cycles"), ("warm", "touch_cycles"), self.seed));
            let what = format!("{} first touch, paged over warm", size(bytes));
            goals.push(Goal::within(what, "x", Bound::AtLeast(10.0), touch));
        }
        for bytes in self.small() {
            let what = format!("{} system over user mode", size(bytes));
            goals.push(Goal::within(what, "x", Bound::AtLeast(1.0), self.over(bytes, "paged", "warm")));
        }
        for (least, most) in
            [(self.sizes.first(), self.small().last()), (Some(&SCALING_TO), self.sizes.last().copied())]
        {
            let (Some(&least), Some(most)) = (least, most) else { continue };
            let growth =
                self.calls(most, "warm").zip(self.calls(least, "warm")).map(|(large, small)| large / small);
            let what = format!("allocating and freeing alone, {} over {}", size(most), size(least));
            goals.push(Goal::of(what, "x", Bound::AtMost(2.0), growth));
        }
        goals
    }

    /// The sizes of Figure 5.
    fn small(&self) -> impl Iterator<Item = usize> {
        self.sizes.iter().copied().filter(|bytes| *bytes <= SCALING_TO)
    }

    fn total(&self, bytes: usize, method: &str) -> Option<f64> {
        middle(self.of(bytes)?, method, "total_cycles")
    }

    fn calls(&self, bytes: usize, method: &str) -> Option<f64> {
        middle(self.of(bytes)?, method, "call_cycles")
    }

    /// A cost that is not larger than the cost of writing cannot be distinguished from zero.
    fn adjusted(&self, bytes: usize, method: &str) -> Option<f64> {
        let above = self.total(bytes, method)? - self.total(bytes, "retained")?;
        (above > 0.0).then_some(above)
    }

    fn scaling(&self) -> Table {
        let total = |bytes: usize, method: &str| Value::of(self.total(bytes, method));
        let calls = |bytes: usize, method: &str| Value::of(self.calls(bytes, method));
        let adjusted = |bytes: usize, method: &str| Value::of(self.adjusted(bytes, method));
        let over = |bytes: usize| Value::ratio(self.over(bytes, "paged", "warm"));
        let rest = |bytes: usize| Some(self.adjusted(bytes, "paged")? / self.adjusted(bytes, "warm")?);
        table_by(
            &format!("Figure 5: allocate, write one byte of every page, free; {UNIT} a block"),
            &self.small().collect::<Vec<_>>(),
            &[
                ("block", "block", &|bytes| Value::text(size(*bytes))),
                ("system", "system", &|bytes| total(*bytes, "paged")),
                ("user_mode", "user mode", &|bytes| total(*bytes, "warm")),
                ("system_over_user_mode", "system / user mode|[95 %]", &|bytes| over(*bytes)),
                ("system_adjusted", "adjusted|system", &|bytes| adjusted(*bytes, "paged")),
                ("user_mode_adjusted", "|user mode", &|bytes| adjusted(*bytes, "warm")),
                ("adjusted_ratio", "|ratio", &|bytes| Value::of(rest(*bytes))),
                ("system_calls", "calls alone|system", &|bytes| calls(*bytes, "paged")),
                ("user_mode_calls", "|user mode", &|bytes| calls(*bytes, "warm")),
            ],
        )
    }

    fn figure_5(&self) -> Figure {
        let points = |of: &dyn Fn(usize) -> Option<f64>| {
            self.small().filter_map(|bytes| Some((bytes as f64, of(bytes)?))).collect()
        };
        Figure {
            name: "douglas-figure5".into(),
            title: "Figure 5: scaling with block size".into(),
            x: Axis::Bytes("block size".into()),
            y: Axis::Log(format!("{UNIT} a block")),
            series: vec![
                Series::line("system", points(&|bytes| self.total(bytes, "paged"))),
                Series::line("user mode", points(&|bytes| self.total(bytes, "warm"))),
                Series::line("system, adjusted", points(&|bytes| self.adjusted(bytes, "paged"))),
                Series::line("user mode, adjusted", points(&|bytes| self.adjusted(bytes, "warm"))),
                Series::line("user mode, calls alone", points(&|bytes| self.calls(bytes, "warm"))),
            ],
        }
    }

    fn series(&self, part: &str) -> Vec<Series> {
        let points = |method: &str| {
            let point = |bytes: &usize| Some((*bytes as f64, self.a_page(*bytes, method, part)?));
            self.sizes.iter().filter_map(point).collect()
        };
        METHODS.iter().map(|(method, label)| Series::line(*label, points(method))).collect()
    }

    fn figure_3(&self) -> Figure {
        let points = self.sizes.iter().filter_map(|bytes| Some((*bytes as f64, self.overhead(*bytes)?)));
        let ends = self.sizes.first().zip(self.sizes.last());
        let level =
            |value: f64| ends.map_or(Vec::new(), |(a, b)| vec![(*a as f64, value), (*b as f64, value)]);
        Figure {
            name: "douglas-figure3".into(),
            title: "Figure 3: what paging adds to allocating, writing and freeing a block".into(),
            x: Axis::Bytes("block size".into()),
            y: Axis::Linear("overhead over non-paged (%)".into()),
            series: vec![
                Series::line("here, Linux", points.collect()),
                Series::published("published maximum, Linux", level(36.0)),
                Series::published("published maximum, Windows", level(125.0)),
            ],
        }
    }

    fn figure_4(&self) -> Figure {
        let published =
            |column: usize| TABLE_1.iter().map(|(bytes, values)| (*bytes as f64, values[column])).collect();
        let mut series = self.series("touch_cycles");
        series.push(Series::published("published, Linux paged", published(2)));
        series.push(Series::published("published, Linux non-paged", published(3)));
        Figure {
            name: "douglas-figure4".into(),
            title: "Figure 4: the first touch of a page".into(),
            x: Axis::Bytes("block size".into()),
            y: Axis::Log(format!("{UNIT} a page")),
            series,
        }
    }
}
