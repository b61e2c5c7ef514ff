//! The report of section `timing`: a table for each question, and each goal with its verdict.
//!
//! This file measures and stores nothing: every figure comes from the campaign's runs or is computed from
//! them. Repeats without a figure count as failed in the counts of repeats, and are listed below the tables.

use super::{GOOGLE, HYPERFINE, Kernel, SECTION, VELLUM};
use crate::Sheet;
use vellum_campaign::cells::ratio;
use vellum_campaign::{Bound, Goal};
use vellum_measure::median;
use vellum_report::Table;
use vellum_report::units::fixed;

/// The true effect of B, in percent.
const TRUE_PERCENT: f64 = 1.0;
/// Bound of an estimate's error, in percentage points.
const ERROR_MAX: f64 = 0.1;
/// Bound of the effect when A is compared with itself, in percent.
const CONTROL_MAX: [f64; Kernel::ALL.len()] = [0.02, 0.2];
/// Share of control runs whose 95 % interval must contain the truth, in percent.
const COVERED_MIN: f64 = 90.0;
/// Bound of the scatter of absolute figures, in percent.
const SCATTER_MAX: [f64; Kernel::ALL.len()] = [2.0, 5.0];
/// Bound of the time of the processes' duel over hyperfine's.
const TIME_MAX: f64 = 1.0;
/// Bound of the slowdown by `vellum cost`.
const SLOW_DOWN_MAX: f64 = 2.0;

/// Tables and goals.
#[derive(Debug, Default)]
pub struct Found {
    /// Each goal, in the order of the questions.
    pub goals: Vec<Goal>,
    /// The whole report as text, with a newline at the end.
    pub text: String,
}

impl Found {
    /// The measurements without a cell.
    #[must_use]
    pub fn besides(tables: &[Table], goals: Vec<Goal>) -> Self {
        let goals_table = self::goals(&goals);
        let texts: Vec<String> = tables.iter().chain([&goals_table]).map(Table::text).collect();
        Self { goals, text: texts.join("\n") }
    }

    /// Adds the text and the goals of other measurements.
    pub fn add(&mut self, other: Found) {
        let between = if self.text.is_empty() || other.text.is_empty() { "" } else { "\n" };
        self.text = format!("{}{between}{}", self.text, other.text);
        self.goals.extend(other.goals);
    }

    /// Reads the section's sheets; questions whose cells were not run are left out.
    #[must_use]
    pub fn of(sheets: &[Sheet], seed: u64) -> Self {
        let mut reader = Reader { sheets, seed, goals: Vec::new(), grids: Vec::new() };
        reader.effects();
        reader.coverage();
        reader.processes();
        reader.cost();
        let mut tables: Vec<String> = reader.grids.iter().map(Table::text).collect();
        tables.push(goals(&reader.goals).text());
        tables.retain(|table| !table.is_empty());
        let mut text = tables.join("\n");
        for sheet in sheets {
            for (arm, _) in &sheet.arms {
                if let Some(ended) = sheet.failure(arm) {
                    text += &format!("no figure from {arm}, {}: {ended}\n", sheet.cell);
                }
            }
        }
        Self { goals: reader.goals, text }
    }
}

fn goals(goals: &[Goal]) -> Table {
    let mut grid = Table::plain(&["what", "found", "wanted", "verdict"], 1).titled("Goals");
    for goal in goals {
        let figure = |value: f64| format!("{}{}", plain(value), goal.unit);
        grid.row(vec![
            goal.what.clone(),
            goal.found.map_or_else(|| "-".to_owned(), figure),
            format!("{} {}", goal.bound.sign(), figure(goal.bound.limit())),
            goal.verdict.word().to_owned(),
        ]);
    }
    grid
}

/// Whole numbers without a decimal point, others with at least three places.
fn plain(value: f64) -> String {
    if value == value.round() {
        format!("{value:.0}")
    } else if value.abs() < 0.1 {
        format!("{value:.4}")
    } else {
        format!("{value:.3}")
    }
}

struct Reader<'a> {
    sheets: &'a [Sheet],
    seed: u64,
    goals: Vec<Goal>,
    grids: Vec<Table>,
}

#[derive(Clone, Copy)]
struct Repeats<'a> {
    sheet: &'a Sheet,
    arm: &'a str,
}

impl Repeats<'_> {
    fn values(self, metric: &str) -> Vec<f64> {
        self.sheet.values(self.arm, metric)
    }

    /// Number of repeats, including failed ones.
    fn made(self) -> usize {
        self.sheet.by_round(self.arm, "").len()
    }

    fn middle(self, metric: &str) -> Option<f64> {
        median(&self.values(metric))
    }

    fn most(self, metric: &str) -> Option<f64> {
        self.values(metric).into_iter().reduce(f64::max)
    }

    /// The largest distance from `truth`.
    fn worst(self, metric: &str, truth: f64) -> Option<f64> {
        self.values(metric).into_iter().map(|value| (value - truth).abs()).reduce(f64::max)
    }

    fn sum(self, metric: &str) -> f64 {
        self.values(metric).iter().sum()
    }

    /// Number of repeats in which the figure is above 0.
    fn above_zero(self, metric: &str) -> f64 {
        self.values(metric).iter().filter(|value| **value > 0.0).count() as f64
    }
}

/// The standard deviation, of two values or more.
fn deviation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt())
}

/// The standard deviation over the mean, percent.
fn scatter(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(deviation(values)? / mean * 100.0)
}

impl<'a> Reader<'a> {
    fn repeats(&self, cell: &str, arm: &'a str) -> Option<Repeats<'a>> {
        let sheets = self.sheets;
        let sheet =
            sheets.iter().find(|sheet| sheet.cell.strip_prefix(SECTION) == Some(&format!("-{cell}")))?;
        sheet.arms.iter().any(|(label, _)| label == arm).then_some(Repeats { sheet, arm })
    }

    fn goal(&mut self, what: impl Into<String>, unit: &'static str, bound: Bound, found: Option<f64>) {
        self.goals.push(Goal::of(what, unit, bound, found));
    }

    /// Adds a goal that every repeat must meet.
    fn every(&mut self, what: &str, of: Repeats<'_>, found: f64) {
        let made = of.made();
        self.goal(format!("{what}, of {made} repeats"), "", Bound::AtLeast(made as f64), Some(found));
    }

    fn effects(&mut self) {
        let bounds = CONTROL_MAX.into_iter().zip(SCATTER_MAX);
        for (kernel, (control_max, scatter_max)) in Kernel::ALL.into_iter().zip(bounds) {
            let title = kernel.title();
            let mut grid = Table::plain(&EFFECT, 1).titled(format!("A true +1 %, {title}, in one process"));
            for arm in [VELLUM, GOOGLE] {
                let Some(of) = self.repeats(kernel.name(), arm) else { continue };
                grid.row(effect(of, arm, ""));
                if !of.values("cpu_a_ns").is_empty() {
                    grid.row(effect(of, &format!("{arm}, CPU time"), "cpu_"));
                }
            }
            self.grids.push(grid);
            let Some(of) = self.repeats(kernel.name(), VELLUM) else { continue };
            self.every(&format!("{title}, +1 % in 1 s: right sign"), of, of.above_zero("effect_percent"));
            if kernel == Kernel::Cpu {
                let what = format!("{title}, +1 % in 1 s: worst error of the estimate");
                let worst = of.worst("effect_percent", TRUE_PERCENT);
                self.goal(what, " points", Bound::AtMost(ERROR_MAX), worst);
            }
            let what = format!("{title}, A/A in 1 s: worst error");
            self.goal(what, " %", Bound::AtMost(control_max), of.worst("control_percent", 0.0));
            let what = format!("{title}, absolute figure: CV over repeats");
            self.goal(what, " %", Bound::AtMost(scatter_max), scatter(&of.values("a_ns")));
        }
    }

    fn coverage(&mut self) {
        let head = ["kernel", "control runs", "intervals with 0", "share, %", "worst A/A, %", "rounds a run"];
        let mut grid = Table::plain(&head, 1)
            .titled("Short control runs: how often the stated 95 % interval holds the truth");
        for kernel in Kernel::ALL {
            let Some(of) = self.repeats(&format!("control-{}", kernel.name()), VELLUM) else { continue };
            let (runs, covered) = (of.sum("runs"), of.sum("covered"));
            let share = (runs > 0.0).then(|| covered / runs * 100.0);
            grid.row(vec![
                kernel.title().to_owned(),
                format!("{runs:.0}"),
                format!("{covered:.0}"),
                fixed(share, 1),
                fixed(of.most("control_worst_percent"), 3),
                fixed((runs > 0.0).then(|| of.sum("rounds") / runs), 0),
            ]);
            let what = format!("{}, {runs:.0} control runs: intervals that hold 0", kernel.title());
            self.goal(what, " %", Bound::AtLeast(COVERED_MIN), share);
        }
        self.grids.push(grid);
    }

    fn processes(&mut self) {
        let mut grid = Table::plain(&EFFECT, 1).titled("A true +1 %, CPU-bound, as whole processes");
        let ours = self.repeats("process", VELLUM);
        if let Some(of) = ours {
            grid.row(effect(of, "vellum, CPU time", ""));
            grid.row(effect(of, "vellum, wall time", "wall_"));
        }
        let theirs = self.repeats("process", HYPERFINE);
        if let Some(of) = theirs {
            grid.row(effect(of, HYPERFINE, ""));
            grid.row(effect(of, "hyperfine, user + system", "cpu_"));
        }
        self.grids.push(grid);
        let Some(ours) = ours else { return };
        self.every("whole processes, +1 %: right sign", ours, ours.above_zero("effect_percent"));
        let times = theirs.map(|theirs| {
            ours.sheet
                .by_round(VELLUM, "seconds")
                .into_iter()
                .zip(theirs.sheet.by_round(HYPERFINE, "seconds"))
        });
        let ratios = times.map(|times| times.filter_map(|(ours, theirs)| Some(ours? / theirs?)));
        let worst = ratios.and_then(|ratios| ratios.reduce(f64::max));
        self.goal("whole processes: longest time over hyperfine's", "x", Bound::AtMost(TIME_MAX), worst);
    }

    fn cost(&mut self) {
        let Some(of) = self.repeats("cost", VELLUM) else { return };
        let head = ["how", "CPU time, ms", "over unrecorded", "low", "high", "whole command, s"];
        let mut grid = Table::plain(&head, 1).titled("`vellum cost` on a thread that allocates");
        let ms = |ns: Option<f64>| fixed(ns.map(|ns| ns / 1e6), 1);
        for (name, against, allocator) in
            [("vellum", "preloaded", "Vellum's allocator"), ("own", "plain", "its own allocator")]
        {
            let (recorded, unrecorded) = (format!("{name}_cpu_ns"), format!("{against}_cpu_ns"));
            grid.row(vec![format!("on {allocator}, unrecorded"), ms(of.middle(&unrecorded))]);
            let ratio = ratio(of.sheet, (of.arm, &recorded), (of.arm, &unrecorded), self.seed);
            grid.row(vec![
                format!("on {allocator}, recorded"),
                ms(of.middle(&recorded)),
                fixed(ratio.map(|ratio| ratio.estimate), 2),
                fixed(ratio.map(|ratio| ratio.low), 2),
                fixed(ratio.map(|ratio| ratio.high), 2),
                fixed(of.middle(&format!("{name}_command_seconds")), 2),
            ]);
            let what = format!("cost of a thread, on {allocator}: slow-down");
            self.goals.push(Goal::within(what, "x", Bound::AtMost(SLOW_DOWN_MAX), ratio));
        }
        self.grids.push(grid);
        let off = (!of.values("miscounted").is_empty()).then(|| of.sum("miscounted"));
        self.goal("cost of a thread: mallocs and frees counted wrong", "", Bound::AtMost(0.0), off);
    }
}

const EFFECT: [&str; 10] = [
    "tool",
    "repeats",
    "right sign",
    "effect, %",
    "sd, points",
    "worst error",
    "worst A/A, %",
    "A, µs",
    "CV, %",
    "seconds",
];

/// One tool's row: its results for A and B; `kind` is the prefix of the figures' names.
fn effect(of: Repeats<'_>, title: &str, kind: &str) -> Vec<String> {
    let metric = format!("{kind}effect_percent");
    let effects = of.values(&metric);
    let (control, absolute) = (format!("{kind}control_percent"), of.values(&format!("{kind}a_ns")));
    vec![
        title.to_owned(),
        of.made().to_string(),
        format!("{:.0}", of.above_zero(&metric)),
        fixed(median(&effects), 3),
        fixed(deviation(&effects), 3),
        fixed(of.worst(&metric, TRUE_PERCENT), 3),
        fixed(of.worst(&control, 0.0), 4),
        fixed(median(&absolute).map(|ns| ns / 1e3), 2),
        fixed(scatter(&absolute), 2),
        fixed(of.middle("seconds"), 2),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ended, Metrics, Run};
    use vellum_campaign::Verdict;

    /// A sheet with one arm, a run for each list of figures; an empty list is a failed run.
    fn sheet(cell: &str, arm: &str, runs: &[&[(&str, f64)]]) -> Sheet {
        let run = |(round, figures): (usize, &&[(&str, f64)])| {
            let mut metrics = Metrics::new();
            figures.iter().for_each(|(name, value)| metrics.set(name, *value));
            let result = if figures.is_empty() { Err(Ended::TooLong(9)) } else { Ok(metrics) };
            Run { round, place: 0, result }
        };
        let runs = runs.iter().enumerate().map(run).collect();
        Sheet { cell: format!("timing-{cell}"), arms: vec![(arm.to_owned(), runs)] }
    }

    fn verdict(found: &Found, what: &str) -> Option<(Option<f64>, Verdict)> {
        let goal = found.goals.iter().find(|goal| goal.what.contains(what))?;
        Some((goal.found, goal.verdict))
    }

    fn duel(effect: f64, control: f64, a_ns: f64) -> [(&'static str, f64); 4] {
        [("effect_percent", effect), ("control_percent", control), ("a_ns", a_ns), ("seconds", 1.0)]
    }

    #[test]
    fn a_duel_is_judged_by_its_worst_repeat() {
        let runs = [duel(1.02, 0.001, 100.0), duel(0.95, -0.03, 101.0), duel(1.0, 0.0, 102.0)];
        let found = Found::of(&[sheet("cpu", VELLUM, &[&runs[0], &runs[1], &runs[2]])], 1);
        assert_eq!(verdict(&found, "right sign, of 3"), Some((Some(3.0), Verdict::Met)));
        let (error, met) = verdict(&found, "worst error of the estimate").unwrap();
        assert!((error.unwrap() - 0.05).abs() < 1e-9 && met == Verdict::Met);
        assert_eq!(verdict(&found, "A/A in 1 s"), Some((Some(0.03), Verdict::Missed)));
        let (scatter, met) = verdict(&found, "CV over repeats").unwrap();
        assert!((scatter.unwrap() - 100.0 / 101.0).abs() < 1e-9 && met == Verdict::Met);
        assert!(found.text.contains("CPU-bound") && found.text.contains("MISSED"), "{}", found.text);
    }

    #[test]
    fn a_repeat_without_figures_counts_as_failed_and_is_listed() {
        let run = duel(1.0, 0.0, 100.0);
        let found = Found::of(&[sheet("alloc", VELLUM, &[&run, &[]])], 1);
        assert_eq!(verdict(&found, "right sign, of 2"), Some((Some(1.0), Verdict::Missed)));
        assert!(
            found.text.contains("no figure from vellum, timing-alloc: ended after 9 s"),
            "{}",
            found.text
        );
        assert_eq!(verdict(&found, "worst error of the estimate"), None, "its true effect is not known");
    }

    #[test]
    fn coverage_is_over_all_control_runs() {
        let runs = [("runs", 10.0), ("covered", 10.0)];
        let fewer = [("runs", 10.0), ("covered", 7.0)];
        let found = Found::of(&[sheet("control-cpu", VELLUM, &[&runs, &fewer])], 1);
        assert_eq!(verdict(&found, "20 control runs"), Some((Some(85.0), Verdict::Missed)));
    }

    #[test]
    fn process_duels_are_compared_with_hyperfines_time() {
        let mut both = sheet("process", VELLUM, &[&duel(1.0, 0.1, 5.0)]);
        both.arms.extend(sheet("process", HYPERFINE, &[&[("effect_percent", -3.0), ("seconds", 0.8)]]).arms);
        let found = Found::of(&[both], 1);
        assert_eq!(verdict(&found, "over hyperfine's"), Some((Some(1.25), Verdict::Missed)));
        let alone = Found::of(&[sheet("process", VELLUM, &[&duel(1.0, 0.1, 5.0)])], 1);
        assert_eq!(verdict(&alone, "over hyperfine's"), Some((None, Verdict::NoData)));
    }

    #[test]
    fn costs_are_judged_by_their_ratio_and_every_count() {
        let run = [
            ("plain_cpu_ns", 120.0),
            ("preloaded_cpu_ns", 100.0),
            ("vellum_cpu_ns", 190.0),
            ("own_cpu_ns", 250.0),
            ("miscounted", 2.0),
        ];
        let found = Found::of(&[sheet("cost", VELLUM, &[&run, &run, &run])], 1);
        assert_eq!(verdict(&found, "a thread, on Vellum's allocator: slow-down").unwrap().1, Verdict::Met);
        assert_eq!(verdict(&found, "a thread, on its own allocator: slow-down").unwrap().1, Verdict::Missed);
        assert_eq!(verdict(&found, "a thread: mallocs"), Some((Some(6.0), Verdict::Missed)));
    }
}
