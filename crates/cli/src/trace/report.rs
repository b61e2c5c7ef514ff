//! The results of a trace as numbers, from which the text, the JSON and the plot are made.

use super::args::TraceArgs;
use super::read::Read;
use crate::failure::Failure;
use serde::Serialize;
use vellum_measure::Unit;
use vellum_report::plot::{Chart, PlotError, Quantity, Scaling};
use vellum_workset::trace::TimeUnit;
use vellum_workset::{Advice, Answer, Curve, Demand, Spread, knee, spread};

/// The schema of the JSON. A field's meaning never changes; new fields may be added.
const SCHEMA: &str = "vellum.trace/1";
/// The listed limits, as fractions of the recommended limit.
const PARTS: [f64; 7] = [1.25, 1.0, 0.9, 0.8, 2.0 / 3.0, 0.5, 1.0 / 3.0];
const NANOS: f64 = 1e9;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    pub(super) file: String,
    /// `lackey` or `pages`.
    pub(super) format: &'static str,
    /// The unit of a tick; windows and the delay are in ticks.
    pub(super) time_unit: TimeUnit,
    pub(super) ticks: u64,
    pub(super) references: u64,
    /// Lines or records that could not be read.
    pub(super) bad: u64,
    pub(super) page_bytes: u64,
    /// The number of distinct pages; an estimate if not every page was followed.
    pub(super) pages: u64,
    /// One in this number of pages was followed.
    pub(super) followed_one_in: u64,
    /// The standard error of the knee's pages due to following a sample.
    pub(super) followed_error_pages: f64,
    /// The assumed ticks per second; null for traces timed in nanoseconds.
    pub(super) ticks_per_second: Option<f64>,
    pub(super) delay_seconds: f64,
    pub(super) delay_ticks: f64,
    /// The accepted slowdown, as a share of the program's time.
    pub(super) cap: f64,
    pub(super) criterion: vellum_workset::Criterion,
    pub(super) midway: bool,
    #[serde(flatten)]
    pub(super) answer: Answer,
    /// The range of knees of most other stretches of this length; null if the trace is too short.
    pub(super) spread: Option<Spread>,
    pub(super) advice: Option<Advice>,
    pub(super) limits: Vec<Limit>,
    curve: Curve,
}

#[derive(Debug, Serialize)]
pub(super) struct Limit {
    pub(super) pages: f64,
    pub(super) bytes: f64,
    /// The added time, as a share of the program's time.
    pub(super) slowdown: f64,
    pub(super) at_least: bool,
}

impl Report {
    pub(super) fn new(args: &TraceArgs, read: &Read) -> Result<Report, Failure> {
        let (intervals, end) = (&read.intervals, read.end);
        let ticks = intervals.passed(end).0;
        let nothing = || {
            let (file, references) = (&read.name, intervals.references());
            Failure::because(format!(
                "trace: {file} holds no reference string ({references} references in {ticks} ticks); record one with \
                `valgrind --tool=lackey --trace-mem=yes --log-file=FILE PROGRAM`"
            ))
        };
        let curve = intervals.curve(end).ok_or_else(nothing)?;
        let history = intervals.history(end).ok_or_else(nothing)?;
        let rate = (read.unit != TimeUnit::Nanoseconds).then_some(args.rate);
        let delay_ticks = args.delay.as_secs_f64() * rate.unwrap_or(NANOS);
        let demand = Demand {
            criterion: args.criterion.into(),
            delay: delay_ticks,
            cap: Some(args.cap),
            noise: 1.0 / (ticks as f64).max(1.0),
            unavoidable: if args.midway { 0.0 } else { intervals.first_references(end) },
        };
        let answer = knee(&curve, &demand);
        let advice = history.advice(delay_ticks, args.cap);
        let page_bytes = read.page_size.bytes();
        let limits = advice.iter().flat_map(|advice| PARTS.map(|part| advice.pages * part));
        let limits = limits.map(|pages| {
            let slowdown = history.slowdown(pages, delay_ticks);
            Limit {
                pages,
                bytes: pages * page_bytes as f64,
                slowdown: slowdown.part,
                at_least: slowdown.at_least,
            }
        });
        Ok(Report {
            schema: SCHEMA,
            file: read.name.clone(),
            format: read.format,
            time_unit: read.unit,
            ticks,
            references: intervals.references(),
            bad: read.bad,
            page_bytes,
            pages: intervals.pages(),
            followed_one_in: intervals.sampled_one_in(),
            followed_error_pages: intervals.standard_error(answer.choice().point.pages),
            ticks_per_second: rate,
            delay_seconds: args.delay.as_secs_f64(),
            delay_ticks,
            cap: args.cap,
            criterion: demand.criterion,
            midway: args.midway,
            answer,
            spread: spread(&history, &demand, args.seed),
            advice,
            limits: limits.collect(),
            curve,
        })
    }

    /// The curve, with the knee and the recommended memory.
    pub(super) fn chart(&self) -> Result<Chart, PlotError> {
        let bytes = |pages: f64| pages * self.page_bytes as f64;
        let points = self.curve.points().iter().map(|point| (point.window, bytes(point.pages)));
        let points: Vec<(f64, f64)> = points.collect();
        let (name, unit) = match self.time_unit {
            TimeUnit::References => ("window (references)", Unit::Count),
            TimeUnit::Instructions => ("window (instructions)", Unit::Count),
            TimeUnit::Nanoseconds => ("window", Unit::Nanoseconds),
        };
        let window = Quantity::new(name, unit, Scaling::Ratios);
        let memory = Quantity::new("memory that the window holds", Unit::Bytes, Scaling::Even);
        let choice = self.answer.choice().point;
        let chart = Chart::new(format!("{}: working set", self.file), window, memory);
        let chart = chart.line("working set", &points)?;
        let stem = format!("{}: {}", self.answer.words(), Unit::Bytes.scaled(bytes(choice.pages).round()));
        Ok(chart.stem(stem, (choice.window, bytes(choice.pages))))
    }
}
