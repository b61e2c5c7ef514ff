//! The result of a benchmark: plain data, and its JSON (schema `vellum.bench/1`, documented in
//! docs/bench.md).
//!
//! Times are in nanoseconds. Counts and ratios are plain numbers (1.01 means one per cent more). Confidence
//! intervals are at 95 %.

use super::args::{Metric, TIME_MAX};
use crate::accounts::{Beats, Losses};
use serde::Serialize;
use std::time::Duration;
use vellum_measure::{
    Base, Comparison, Direction, Gate, Interval, Machine, Modality, Series, Stat, Steady, Unit,
};
use vellum_report::units;
use vellum_timing::machine;

/// The schema's name and version. A field's meaning never changes; new ones may come.
pub(super) const SCHEMA: &str = "vellum.bench/1";

/// The whole result.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) schema: &'static str,
    pub(super) vellum_version: &'static str,
    pub(super) kind: Kind,
    pub(super) how: How,
    pub(super) machine: Machine,
    /// The programs, A first.
    pub(super) programs: Vec<Program>,
    /// What starting a program costs by itself.
    pub(super) start: Option<Start>,
    /// What timing nothing costs, for a suite.
    pub(super) base: Option<Base>,
    /// Each other program against A, with A against itself beside it.
    pub(super) versus: Vec<Versus>,
    /// What each thing timed is like.
    pub(super) subjects: Vec<Subject>,
    /// Cases of a suite that were too short for the clock, and what would do.
    pub(super) refused: Vec<String>,
    /// Whether B is slower than allowed.
    pub(super) gates: Vec<Held>,
    /// What a longer run would show.
    pub(super) advice: Option<String>,
    /// What a reader must know.
    pub(super) warnings: Vec<String>,
    /// Every observation, as in schema vellum.observations/1.
    pub(super) series: Vec<Series>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Programs against each other.
    Versus,
    Program,
    /// Operations of this process.
    Suite,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct How {
    /// The clock of wall times.
    pub(super) clock: String,
    /// Its step, nanoseconds.
    pub(super) step_ns: f64,
    /// The seed of the random order; none for a suite.
    pub(super) seed: Option<u64>,
    /// In which order the programs ran: `random` or `duet`; none for a suite.
    pub(super) order: Option<&'static str>,
    /// The processors of a duet.
    pub(super) processors: Option<[usize; 2]>,
    /// Rounds; of a suite, none.
    pub(super) rounds: Option<usize>,
    /// How long they took together, nanoseconds.
    pub(super) took_ns: u64,
    /// The share of observations below an absolute figure.
    pub(super) low_share: f64,
    /// Which figure decides, for programs …
    pub(super) metric: Option<&'static str>,
    /// … in what it is …
    pub(super) unit: Option<Unit>,
    /// … and what counted it, if it was counted.
    pub(super) counter: Option<&'static str>,
    /// Whether a second order was run, or why not.
    pub(super) order_check: Option<String>,
    pub(super) suite: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Program {
    /// What it is called here: `A`, `B` and so on.
    pub(super) arm: String,
    /// A short name for people.
    pub(super) name: String,
    pub(super) path: String,
    /// The command as it was given.
    pub(super) command: Vec<String>,
    /// Its largest resident memory, median over the rounds; none under valgrind, whose memory it would be.
    pub(super) peak_bytes: Option<f64>,
    /// Whether that is only an upper bound: a process begins with the pages of its parent, and the kernel
    /// counts them.
    pub(super) peak_is_bound: bool,
    /// Its page faults, likewise.
    pub(super) faults: Option<f64>,
    /// How many runs failed, and were counted all the same.
    pub(super) failures: usize,
    pub(super) runs: usize,
}

/// What starting and ending a process costs.
#[derive(Debug, Serialize)]
pub(super) struct Start {
    /// What ran.
    pub(super) what: &'static str,
    pub(super) wall: Base,
    pub(super) cpu: Base,
    /// Whether it was taken off.
    pub(super) subtracted: bool,
}

/// One figure of a program and of the first one compared.
#[derive(Debug, Serialize)]
pub(super) struct Versus {
    /// Which program is compared with A.
    pub(super) arm: String,
    pub(super) metric: Metric,
    pub(super) comparison: Comparison,
    pub(super) direction: Direction,
    pub(super) verdict: String,
}

/// What one thing timed is like.
#[derive(Debug, Serialize)]
pub(super) struct Subject {
    pub(super) name: String,
    /// `wall`, `cpu` or `instructions`.
    pub(super) metric: Metric,
    /// Operations in an observation.
    pub(super) batch: u64,
    /// Count, mean, min, max, std, in the metric's unit.
    pub(super) stat: Stat,
    pub(super) median: f64,
    /// The absolute figure: a low quantile.
    pub(super) low: Option<Interval>,
    /// Layers of outliers, and the share that none of them took.
    pub(super) layers: usize,
    pub(super) kept_share: f64,
    /// The course of its level; none of too few observations.
    pub(super) steady: Option<Steady>,
    /// The levels round which it clusters; none of too few observations.
    pub(super) modality: Option<Modality>,
    /// Disturbances that come back.
    pub(super) beats: Option<Beats>,
    /// What outliers lost time to; none where nothing was recorded that could tell.
    pub(super) losses: Option<Losses>,
}

/// A gate and who went through it.
#[derive(Debug, Serialize)]
pub(super) struct Held {
    pub(super) name: String,
    pub(super) gate: Gate,
    /// How long the rounds take that would tell, where nothing was shown.
    pub(super) time_advised_ns: Option<u64>,
}

impl Held {
    /// In words, with the time that more rounds take.
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
    /// Nothing found yet.
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

    /// Why it is slower than allowed, a line each; nothing if it is not.
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
    /// Its key in documents, its name in tables, and in sentences.
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

    /// What its figures are in.
    pub(super) fn unit(self) -> Unit {
        match self {
            Metric::Cpu | Metric::Wall => Unit::Nanoseconds,
            Metric::Instructions => Unit::Instructions,
        }
    }
}
