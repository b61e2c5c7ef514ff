//! The result of a benchmark: the structures of its JSON (schema `vellum.bench/1`; see docs/bench.md).
//!
//! Times are in nanoseconds. Ratios compare a program with the first one: 1.01 means one per cent more. Each
//! interval is a 95 % confidence interval.

use super::args::{Metric, TIME_MAX};
use crate::accounts::{Beats, Losses};
use serde::Serialize;
use std::time::Duration;
use vellum_measure::{
    Base, Comparison, Direction, Gate, Interval, Machine, Modality, Series, Stat, Steady, Unit,
};
use vellum_report::units;
use vellum_timing::machine;

/// The schema's name and version. A field's meaning never changes; new fields may be added.
pub(super) const SCHEMA: &str = "vellum.bench/1";

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) schema: &'static str,
    pub(super) vellum_version: &'static str,
    pub(super) kind: Kind,
    pub(super) how: How,
    pub(super) machine: Machine,
    /// The programs, A first.
    pub(super) programs: Vec<Program>,
    /// The cost of starting an empty program.
    pub(super) start: Option<Start>,
    /// The base of a suite: the time of an empty operation.
    pub(super) base: Option<Base>,
    /// Each other program compared with A, and A compared with itself.
    pub(super) versus: Vec<Versus>,
    /// A description of each timed program or case.
    pub(super) subjects: Vec<Subject>,
    /// Cases of a suite that were too short for the clock, with the batch that they need.
    pub(super) refused: Vec<String>,
    /// The results of --fail-above.
    pub(super) gates: Vec<Held>,
    /// A hint about a longer run.
    pub(super) advice: Option<String>,
    pub(super) warnings: Vec<String>,
    /// Every observation, as in schema vellum.observations/1.
    pub(super) series: Vec<Series>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Programs compared with each other.
    Versus,
    Program,
    /// Operations of this process.
    Suite,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct How {
    pub(super) clock: String,
    /// The step of the clock, nanoseconds.
    pub(super) step_ns: f64,
    /// The seed of the random order; null for a suite.
    pub(super) seed: Option<u64>,
    /// The order of the programs: `random`; null for a suite.
    pub(super) order: Option<&'static str>,
    /// The number of rounds; null for a suite.
    pub(super) rounds: Option<usize>,
    /// The time of all rounds, nanoseconds.
    pub(super) took_ns: u64,
    /// The share of observations below an absolute figure.
    pub(super) low_share: f64,
    pub(super) metric: Option<&'static str>,
    pub(super) unit: Option<Unit>,
    /// The counter of the deciding metric, if it is instructions.
    pub(super) counter: Option<&'static str>,
    /// The second order's result, or the reason why none was run.
    pub(super) order_check: Option<String>,
    pub(super) suite: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Program {
    /// Its letter in this report: `A`, `B` and so on.
    pub(super) arm: String,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) command: Vec<String>,
    /// Its peak resident memory, median over the rounds; null under valgrind, which would be included.
    pub(super) peak_bytes: Option<f64>,
    /// True if the peak is only an upper bound: a process starts with its parent's pages, and the kernel
    /// counts them.
    pub(super) peak_is_bound: bool,
    /// Its page faults, median over the rounds; null under valgrind.
    pub(super) faults: Option<f64>,
    /// The number of failed runs, which were counted anyway.
    pub(super) failures: usize,
    pub(super) runs: usize,
}

/// The cost of starting and ending a process.
#[derive(Debug, Serialize)]
pub(super) struct Start {
    /// The empty program that ran.
    pub(super) what: &'static str,
    pub(super) wall: Base,
    pub(super) cpu: Base,
    /// True if the cost was subtracted.
    pub(super) subtracted: bool,
}

/// A comparison of one program with the first, by one metric.
#[derive(Debug, Serialize)]
pub(super) struct Versus {
    /// The letter of the program that is compared with A.
    pub(super) arm: String,
    pub(super) metric: Metric,
    pub(super) comparison: Comparison,
    pub(super) direction: Direction,
    pub(super) verdict: String,
}

/// A description of one timed program or case.
#[derive(Debug, Serialize)]
pub(super) struct Subject {
    pub(super) name: String,
    /// `wall`, `cpu` or `instructions`.
    pub(super) metric: Metric,
    /// The number of operations per observation.
    pub(super) batch: u64,
    /// Count, mean, min, max, std, in the metric's unit.
    pub(super) stat: Stat,
    pub(super) median: f64,
    /// The absolute figure: a low quantile.
    pub(super) low: Option<Interval>,
    /// The number of outlier layers, and the share of observations outside of all layers.
    pub(super) layers: usize,
    pub(super) kept_share: f64,
    /// The course of its level; null with too few observations.
    pub(super) steady: Option<Steady>,
    /// The levels around which it clusters; null with too few observations.
    pub(super) modality: Option<Modality>,
    pub(super) beats: Option<Beats>,
    /// The causes to which outliers lost time; null if none were recorded.
    pub(super) losses: Option<Losses>,
}

/// The result of a gate for one program.
#[derive(Debug, Serialize)]
pub(super) struct Held {
    pub(super) name: String,
    pub(super) gate: Gate,
    /// If nothing was shown: the time of the rounds needed for a result.
    pub(super) time_advised_ns: Option<u64>,
}

impl Held {
    /// The result in words, with the time for more rounds.
    pub(super) fn words(&self) -> String {
        let time = self.time_advised_ns.map(|ns| {
            let time = Duration::from_nanos(ns);
            let option = (time <= TIME_MAX).then(|| format!(": --time {}s", time.as_secs_f64().ceil()));
            format!("; here that takes about {}{}", units::time(time), option.unwrap_or_default())
        });
        format!("--fail-above: {}: {}{}", self.name, self.gate, time.unwrap_or_default())
    }
}

impl Report {
    pub(super) fn new(kind: Kind, how: How) -> Report {
        Report {
            schema: SCHEMA,
            vellum_version: env!("CARGO_PKG_VERSION"),
            kind,
            how,
            machine: machine::read(),
            programs: Vec::new(),
            start: None,
            base: None,
            versus: Vec::new(),
            subjects: Vec::new(),
            refused: Vec::new(),
            gates: Vec::new(),
            advice: None,
            warnings: Vec::new(),
            series: Vec::new(),
        }
    }

    /// The failed gates, one line each; empty if none failed.
    pub(super) fn failed(&self) -> Vec<String> {
        let failed = self.gates.iter().filter(|held| held.gate.failed());
        let what = match self.how.unit {
            Some(Unit::Instructions) => "more instructions than allowed",
            _ => "slower than allowed",
        };
        failed.map(|held| format!("{what}: {}: {}", held.name, held.gate)).collect()
    }
}

impl Metric {
    /// The metric's key in documents, its name in tables, and its name in sentences.
    fn names(self) -> [&'static str; 3] {
        match self {
            Metric::Cpu => ["cpu", "CPU", "CPU time"],
            Metric::Wall => ["wall", "wall", "wall time"],
            Metric::Instructions => ["instructions"; 3],
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.names()[0]
    }

    pub(super) fn short(self) -> &'static str {
        self.names()[1]
    }

    pub(super) fn words(self) -> &'static str {
        self.names()[2]
    }

    pub(super) fn unit(self) -> Unit {
        match self {
            Metric::Cpu | Metric::Wall => Unit::Nanoseconds,
            Metric::Instructions => Unit::Instructions,
        }
    }
}
