//! The result of `vellum run --compare`: its data, its table, and its JSON (schema `vellum.compare/1`,
//! documented in docs/run-schema.md).

use crate::run::args::PAIRS_MIN;
use crate::run::launch::{Observed, Plan};
use crate::run::report::Attachment;
use crate::text::shown_shortly;
use serde::Serialize;
use std::time::Duration;
use vellum_measure::{CONFIDENCE, Direction, Interval, median, paired_ratio};
use vellum_report::units::{bytes, count, many, time};
use vellum_report::{Head, Report, Section, Table};

const SCHEMA: &str = "vellum.compare/1";
const RESAMPLES: usize = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Arm {
    Without,
    Control,
    With,
}

impl Arm {
    pub(crate) const ALL: [Arm; 3] = [Arm::Without, Arm::Control, Arm::With];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Arm::Without | Arm::Control => "without Vellum",
            Arm::With => "on Vellum",
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Once {
    arm: Arm,
    round: usize,
    wall_ns: u64,
    user_ns: u64,
    system_ns: u64,
    peak_bytes: u64,
    minor_faults: u64,
    major_faults: u64,
}

impl Once {
    pub(crate) fn new(arm: Arm, round: usize, observed: &Observed) -> Once {
        let usage = &observed.ended.usage;
        let sampled = observed.sampled.series.peak().unwrap_or_default();
        Once {
            arm,
            round,
            wall_ns: observed.ended.wall.as_nanos() as u64,
            user_ns: usage.user.as_nanos() as u64,
            system_ns: usage.system.as_nanos() as u64,
            peak_bytes: sampled.max(usage.largest_process).0,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    Wall,
    Cpu,
    PeakResident,
    Faults,
}

impl Metric {
    const ALL: [Metric; 4] = [Metric::Wall, Metric::Cpu, Metric::PeakResident, Metric::Faults];

    /// The metric's name in the table, its name in a sentence, and its unit.
    fn names(self) -> [&'static str; 3] {
        match self {
            Metric::Wall => ["wall", "wall time", "ns"],
            Metric::Cpu => ["user + system", "CPU time", "ns"],
            Metric::PeakResident => ["peak resident", "peak memory", "bytes"],
            Metric::Faults => ["faults", "page faults", "faults"],
        }
    }

    fn of(self, run: &Once) -> u64 {
        match self {
            Metric::Wall => run.wall_ns,
            Metric::Cpu => run.user_ns + run.system_ns,
            Metric::PeakResident => run.peak_bytes,
            Metric::Faults => run.minor_faults + run.major_faults,
        }
    }

    fn show(self, value: f64) -> String {
        let value = value.round() as u64;
        match self {
            Metric::Wall | Metric::Cpu => time(Duration::from_nanos(value)),
            Metric::PeakResident => bytes(value),
            Metric::Faults => count(value),
        }
    }
}

/// The result for one metric; ratios are null if a run's value was zero.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    metric: Metric,
    unit: &'static str,
    without_median: f64,
    with_median: f64,
    ratio: Option<Interval>,
    control_ratio: Option<Interval>,
    verdict: Verdict,
}

/// The result of comparing "with" and "without".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Less,
    More,
    NoDifference,
    /// A signal ended the comparison before there were enough pairs.
    TooFew,
    NotMeasured,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) pairs: u32,
    pub(crate) asked: u32,
    /// The signal that ended the comparison early.
    pub(crate) stopped: Option<i32>,
}

impl Verdict {
    fn of(ratio: Option<Interval>, control: Option<Interval>) -> Verdict {
        let (Some(ratio), Some(control)) = (ratio, control) else { return Verdict::NotMeasured };
        match Direction::of(ratio, control) {
            Direction::Less => Verdict::Less,
            Direction::More => Verdict::More,
            Direction::NotShown => Verdict::NoDifference,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    schema: &'static str,
    vellum_version: &'static str,
    command: Vec<String>,
    program: String,
    stdin: &'static str,
    seed: u64,
    pairs: u32,
    pairs_asked: u32,
    stopped_by: Option<i32>,
    confidence: f64,
    resamples: usize,
    results: [Row; 4],
    attachment: Attachment,
    runs: Vec<Once>,
}

impl Comparison {
    pub(crate) fn new(
        plan: &Plan,
        seed: u64,
        extent: Extent,
        runs: Vec<Once>,
        attachment: Attachment,
        stdin: &'static str,
    ) -> Comparison {
        let mut results = Metric::ALL.map(|metric| row(metric, &runs, seed));
        if extent.pairs < PAIRS_MIN {
            let measured = results.iter_mut().filter(|row| row.verdict != Verdict::NotMeasured);
            measured.for_each(|row| row.verdict = Verdict::TooFew);
        }
        Comparison {
            schema: SCHEMA,
            vellum_version: env!("CARGO_PKG_VERSION"),
            command: plan.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            program: plan.program.display().to_string(),
            stdin,
            seed,
            pairs: extent.pairs,
            pairs_asked: extent.asked,
            stopped_by: extent.stopped,
            confidence: CONFIDENCE,
            resamples: RESAMPLES,
            results,
            attachment,
            runs,
        }
    }
}

fn row(metric: Metric, runs: &[Once], seed: u64) -> Row {
    // Runs are in the order of the rounds, and so are each arm's values.
    let values = |arm: Arm| -> Vec<f64> {
        runs.iter().filter(|run| run.arm == arm).map(|run| metric.of(run) as f64).collect()
    };
    let (without, control, with) = (values(Arm::Without), values(Arm::Control), values(Arm::With));
    let ratio = |over: &[f64]| {
        let pairs: Vec<(f64, f64)> = over.iter().copied().zip(without.iter().copied()).collect();
        paired_ratio(&pairs, RESAMPLES, seed)
    };
    let (with_ratio, control_ratio) = (ratio(&with), ratio(&control));
    Row {
        metric,
        unit: metric.names()[2],
        without_median: median(&without).unwrap_or_default(),
        with_median: median(&with).unwrap_or_default(),
        ratio: with_ratio,
        control_ratio,
        verdict: Verdict::of(with_ratio, control_ratio),
    }
}

pub(crate) fn report(comparison: &Comparison) -> Report<'_> {
    let Comparison { pairs, pairs_asked, seed, .. } = comparison;
    let made = many((*pairs).into(), "pair");
    let of = shown_shortly(&comparison.command);
    let ending = format!("{made} in random order, seed {seed}");
    let mut report = Report::new(Head { name: "vellum", of, ending, ..Head::default() });
    let heads = ["median", "without", "with", "with/without", "control"];
    let mut table = Table::plain(&heads, 1);
    for row in &comparison.results {
        table.row(vec![
            row.metric.names()[0].to_owned(),
            row.metric.show(row.without_median),
            row.metric.show(row.with_median),
            row.ratio.map_or("not measured".to_owned(), |it| format!("{:.3} {}", it.estimate, within(it))),
            row.control_ratio.map_or_else(String::new, within),
        ]);
    }
    let verdicts: Vec<String> = comparison.results.iter().map(show_verdict).collect();
    let percent = (CONFIDENCE * 100.0).round();
    report.section(Section::new(), |section| {
        section.table(table);
        section.rows([("so", format!("on Vellum it takes {}", verdicts.join(", ")))]);
        section.note(format!(
            "ratios are medians over the pairs, with {percent} % intervals; control: without/without"
        ));
        if pairs < pairs_asked {
            let few = if *pairs < PAIRS_MIN { "; at least 5 are needed" } else { "" };
            section.note(format!("it was stopped early, when {made} of {pairs_asked} were complete{few}"));
        }
        let reason = comparison.attachment.reason.as_ref();
        section.notes(reason.map(|reason| format!("the program did not run on Vellum: {reason}")));
    });
    report.documented(comparison)
}

fn within(ratio: Interval) -> String {
    format!("[{:.3}, {:.3}]", ratio.low, ratio.high)
}

/// The verdict for a metric in words, after "it takes".
fn show_verdict(row: &Row) -> String {
    let percent = row.ratio.map_or(0.0, |ratio| (ratio.estimate - 1.0).abs() * 100.0);
    let percent = if percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") };
    let what = row.metric.names()[1];
    match row.verdict {
        Verdict::Less if what.ends_with('s') => format!("{percent} % fewer {what}"),
        Verdict::Less => format!("{percent} % less {what}"),
        Verdict::More => format!("{percent} % more {what}"),
        Verdict::NoDifference => format!("the same {what} (no difference is shown)"),
        Verdict::TooFew => format!("{what} that too few pairs compare"),
        Verdict::NotMeasured => format!("{what} that was not measured"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arm: Arm, round: usize, wall_ns: u64) -> Once {
        Once {
            arm,
            round,
            wall_ns,
            user_ns: 0,
            system_ns: 0,
            peak_bytes: 1 << 20,
            minor_faults: 100,
            major_faults: 0,
        }
    }

    #[test]
    fn real_difference_is_reported_and_noise_is_not() {
        let mut runs = Vec::new();
        for round in 0..20 {
            let base = 1_000_000 + 10_000 * (round as u64 % 5);
            runs.push(run(Arm::Without, round, base));
            runs.push(run(Arm::Control, round, base + 3000 * (round as u64 % 3) - 3000));
            runs.push(run(Arm::With, round, base / 2));
        }
        let wall = row(Metric::Wall, &runs, 1);
        assert_eq!(wall.verdict, Verdict::Less);
        assert!((wall.ratio.unwrap().estimate - 0.5).abs() < 0.01);
        assert_eq!(row(Metric::PeakResident, &runs, 1).verdict, Verdict::NoDifference);
        let cpu = row(Metric::Cpu, &runs, 1);
        assert_eq!((cpu.verdict, cpu.ratio.is_none()), (Verdict::NotMeasured, true));
    }

    #[test]
    fn overlap_with_the_control_shows_no_difference() {
        let ratio = |low, high| Some(Interval { estimate: (low + high) / 2.0, low, high });
        assert_eq!(Verdict::of(ratio(1.02, 1.04), ratio(0.97, 1.03)), Verdict::NoDifference);
        assert_eq!(Verdict::of(ratio(1.04, 1.05), ratio(0.97, 1.03)), Verdict::More);
        assert_eq!(Verdict::of(ratio(0.90, 0.99), ratio(1.01, 1.03)), Verdict::Less);
        assert_eq!(Verdict::of(ratio(0.90, 1.01), ratio(1.02, 1.03)), Verdict::NoDifference);
    }
}
