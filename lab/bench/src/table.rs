//! Tables: the figures of each line, and their text.
//!
//! ```text
//! (a) Large blocks … ns per page
//!          floor  glibc  …  vellum  │  ratio          95 %        target  A/A g  A/A v  verdict
//!   1 MiB   5.30   5.51  …    5.31  │   1.00  [0.99, 1.01]  <= 1.3 floor  1.001  0.999  met
//! ```
//!
//! `ratio` is Vellum's figure divided by the figure that the target names, with its 95 % interval. `floor`
//! is the figure of the same accesses to memory that stays mapped, without an allocator. The controls,
//! `A/A g` for glibc and `A/A v` for Vellum, are the allocator's figure divided by that of its second arm.

use crate::target::{Against, Judgement, control, judge};
use crate::{Sheet, Target, peer};
use vellum_campaign::Verdict;
use vellum_measure::{Interval, median, short};
use vellum_report::units::fixed;

/// The unit a table's figures are printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, as they are.
    Nanos,
    /// Nanoseconds, printed as milliseconds.
    Millis,
    /// Bytes, printed as mebibytes.
    Mebibytes,
    /// A ratio.
    Ratio,
    /// A number of things.
    Count,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Millis => "ms",
            Self::Mebibytes => "MiB",
            Self::Ratio => "ratio",
            Self::Count => "count",
        }
    }

    fn scale(self) -> f64 {
        match self {
            Self::Nanos | Self::Ratio | Self::Count => 1.0,
            Self::Millis => 1e6,
            Self::Mebibytes => f64::from(1 << 20),
        }
    }
}

/// One line of a table.
#[derive(Debug, Clone)]
pub struct Line {
    /// The text at its beginning.
    pub label: String,
    /// The cell whose runs it shows.
    pub cell: String,
    /// The target, if there is one.
    pub target: Option<Target>,
}

/// A table: one figure of several cells.
#[derive(Debug, Clone)]
pub struct Table {
    /// The title.
    pub title: String,
    /// The name of the figure.
    pub metric: &'static str,
    /// The unit of the figure.
    pub unit: Unit,
    /// The lines.
    pub lines: Vec<Line>,
    /// Targets for the geometric mean of the ratios of all lines' cells.
    pub means: Vec<Target>,
}

/// A line with its figures.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The words at its beginning.
    pub label: String,
    /// The cell.
    pub cell: String,
    /// Medians by arm, in the order of columns, without the second arms.
    pub medians: Vec<(String, Option<f64>)>,
    /// The ratio of second arm to first: of glibc (or of the arm compared with, if glibc has none), and of
    /// the judged arm.
    pub controls: [Option<(String, Interval)>; 2],
    /// The target and its verdict.
    pub judgement: Option<Judgement>,
    /// Reasons for figures that are missing.
    pub failures: Vec<String>,
}

/// The place of an arm's column; arms that are not peers come first.
fn place(arm: &str) -> usize {
    peer::NAMES.iter().position(|name| *name == arm).map_or(0, |place| place + 1)
}

impl Table {
    /// Judges every line whose cell was run.
    #[must_use]
    pub fn judged(&self, sheets: &[Sheet], seed: u64) -> Vec<Judged> {
        let find = |name: &str| sheets.iter().find(|sheet| sheet.cell == name);
        let lines = self.lines.iter().filter_map(|line| Some((line, find(&line.cell)?)));
        lines
            .map(|(line, sheet)| {
                let mut arms: Vec<&str> = sheet.arms.iter().map(|(label, _)| label.as_str()).collect();
                arms.retain(|arm| !arm.ends_with('\''));
                arms.sort_by_key(|arm| place(arm));
                let of = |arm: &&str| ((*arm).to_owned(), median(&sheet.values(arm, self.metric)));
                let failed = |arm: &&str| Some(format!("{arm}, {}: {}", line.cell, sheet.failure(arm)?));
                let controlled = |arm: &str| Some((arm.to_owned(), control(sheet, arm, self.metric, seed)?));
                let (own, other) = match &line.target {
                    Some(Target { own, against: Against::Arm(arm), .. }) => (*own, *arm),
                    _ => (peer::VELLUM, peer::GLIBC),
                };
                Judged {
                    label: line.label.clone(),
                    cell: line.cell.clone(),
                    medians: arms.iter().map(of).collect(),
                    controls: [controlled(peer::GLIBC).or_else(|| controlled(other)), controlled(own)],
                    judgement: line
                        .target
                        .as_ref()
                        .map(|target| judge(target, self.metric, sheet, find, seed)),
                    failures: arms.iter().filter_map(failed).collect(),
                }
            })
            .chain(self.means.iter().filter_map(|target| self.mean(target, sheets, seed)))
            .collect()
    }

    /// The geometric mean of the judged arm's ratios; `None` if a line's cell was not run.
    fn mean(&self, target: &Target, sheets: &[Sheet], seed: u64) -> Option<Judged> {
        let mut cells: Vec<&str> = self.lines.iter().map(|line| line.cell.as_str()).collect();
        cells.dedup();
        let find = |name: &str| sheets.iter().find(|sheet| sheet.cell == name);
        let of = |cell: &&str| Some(judge(target, self.metric, find(cell)?, find, seed));
        let judged: Vec<Judgement> = cells.iter().map(of).collect::<Option<_>>()?;
        let logs: Option<Vec<f64>> = judged.iter().map(|judged| Some(judged.ratio?.ln())).collect();
        let ratio = logs.map(|logs| (logs.iter().sum::<f64>() / logs.len() as f64).exp());
        let verdict = ratio.map_or(Verdict::NoData, |ratio| Verdict::of(target.bound, ratio, None, None));
        let against = judged.first()?.against.clone();
        Some(Judged {
            label: format!("geometric mean, {}", target.own),
            cell: String::new(),
            medians: Vec::new(),
            controls: [None, None],
            judgement: Some(Judgement { against, ratio, interval: None, bound: target.bound, verdict }),
            failures: Vec::new(),
        })
    }

    /// The table as text, with a newline at the end; empty when no line has figures.
    #[must_use]
    pub fn text(&self, lines: &[Judged]) -> String {
        if lines.is_empty() {
            return String::new();
        }
        let mut out = self.printed(lines).titled(format!("{} [{}]", self.title, self.unit.name())).text();
        let mut failures: Vec<&String> = lines.iter().flat_map(|line| &line.failures).collect();
        failures.dedup();
        failures.iter().for_each(|failure| out += &format!("  no figure from {failure}\n"));
        out
    }

    /// The table in Markdown, below its title.
    #[must_use]
    pub fn markdown(&self, lines: &[Judged]) -> String {
        format!("{} ({}):\n\n{}", self.title, self.unit.name(), self.printed(lines).markdown())
    }

    fn printed(&self, lines: &[Judged]) -> vellum_report::Table {
        let mut columns: Vec<&str> = Vec::new();
        for arm in lines.iter().flat_map(|line| line.medians.iter().map(|(arm, _)| arm.as_str())) {
            if !columns.contains(&arm) {
                columns.push(arm);
            }
        }
        columns.sort_by_key(|arm| place(arm));
        let is_usual =
            lines.iter().flat_map(|line| line.controls[0].as_ref()).all(|(arm, _)| arm == peer::GLIBC);
        let [other, own] = if is_usual { ["A/A g", "A/A v"] } else { ["A/A other", "A/A own"] };
        let tail = ["│", "ratio", "95 %", "target", other, own, "verdict"];
        let heads: Vec<&str> = [""].into_iter().chain(columns.iter().copied()).chain(tail).collect();
        let mut printed = vellum_report::Table::plain(&heads, 1).with_words_last();
        for line in lines {
            let figure = |column: &&str| {
                let value = line.medians.iter().find(|(arm, _)| arm == column).and_then(|(_, value)| *value);
                value.map_or_else(|| "-".to_owned(), |v| short(v / self.unit.scale()))
            };
            let figures = columns.iter().map(figure);
            printed
                .row([line.label.clone()].into_iter().chain(figures).chain(line.tail(self.unit)).collect());
        }
        printed
    }
}

impl Judged {
    /// The cells after the bar.
    fn tail(&self, unit: Unit) -> [String; 7] {
        let [glibc, vellum] = self.controls.each_ref().map(|c| fixed(c.as_ref().map(|(_, c)| c.estimate), 3));
        let bar = "│".to_owned();
        let Some(judged) = &self.judgement else {
            let [ratio, interval, target, verdict] = Default::default();
            return [bar, ratio, interval, target, glibc, vellum, verdict];
        };
        // A figure judged alone is no ratio: it has the table's unit.
        let short = |value: f64| fine(if judged.against.is_empty() { value / unit.scale() } else { value });
        let ratio = judged.ratio.map_or_else(|| "-".to_owned(), short);
        let interval =
            judged.interval.map_or_else(String::new, |i| format!("[{}, {}]", short(i.low), short(i.high)));
        let target = format!("{} {} {}", judged.bound.sign(), short(judged.bound.limit()), judged.against);
        [bar, ratio, interval, target, glibc, vellum, judged.verdict.word().to_owned()]
    }

    /// The verdict, if the line has a target.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.judgement.as_ref().map(|judged| judged.verdict)
    }
}

/// One digit more than [`short`] where a target may depend on it.
fn fine(value: f64) -> String {
    if (1.0..10.0).contains(&value) { format!("{value:.3}") } else { short(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Against;
    use crate::{Ended, Metrics, Run};

    fn run(value: f64) -> Run {
        let mut metrics = Metrics::new();
        metrics.set("ns", value);
        Run { round: 0, place: 0, result: Ok(metrics) }
    }

    #[test]
    fn a_table_shows_figures_targets_and_failures() {
        let broken = Run { round: 0, place: 1, result: Err(Ended::TooLong(9)) };
        let arms = vec![
            ("vellum".to_owned(), vec![run(2.0)]),
            ("glibc".to_owned(), vec![run(4.0)]),
            ("jemalloc".to_owned(), vec![broken]),
            ("floor".to_owned(), vec![run(1.9)]),
            ("glibc'".to_owned(), vec![run(4.0)]),
        ];
        let sheets = [Sheet { cell: "x".to_owned(), arms }];
        let line = |cell: &str| Line {
            label: format!("line {cell}"),
            cell: cell.to_owned(),
            target: Some(Target::faster(1.5, Against::Arm("glibc"))),
        };
        let table = Table {
            title: "Title".into(),
            metric: "ns",
            unit: Unit::Nanos,
            lines: vec![line("x"), line("gone")],
            means: Vec::new(),
        };
        let judged = table.judged(&sheets, 1);
        assert_eq!(judged.len(), 1, "a cell that was not run has no line");
        let text = table.text(&judged);
        let head: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().take(4).collect();
        assert_eq!(head, ["floor", "glibc", "jemalloc", "vellum"], "{text}");
        for part in ["Title [ns]", "1.90", "4.00", ">= 1.500 glibc", "met", "ended after 9 s"] {
            assert!(text.contains(part), "{part:?} is missing:\n{text}");
        }
        assert!(table.markdown(&judged).starts_with("Title (ns):\n\n|  | floor | glibc |"), "{text}");
    }

    #[test]
    fn means_are_geometric_and_need_every_cell() {
        let sheet = |cell: &str, own: f64| Sheet {
            cell: cell.to_owned(),
            arms: [("libgc", 4.0), ("plan", own)].map(|(arm, ns)| (arm.to_owned(), vec![run(ns)])).into(),
        };
        let line = |cell: &str| Line { label: cell.to_owned(), cell: cell.to_owned(), target: None };
        let mean = Target::at_most(0.9, Against::Arm("libgc")).of("plan");
        let lines = vec![line("a"), line("b")];
        let table =
            Table { title: "Title".into(), metric: "ns", unit: Unit::Nanos, lines, means: vec![mean] };
        let judged = table.judged(&[sheet("a", 2.0), sheet("b", 8.0)], 1);
        assert_eq!((judged.len(), judged[2].verdict()), (3, Some(Verdict::Missed)));
        assert!(judged[2].judgement.as_ref().is_some_and(|mean| (mean.ratio.unwrap() - 1.0).abs() < 1e-9));
        assert!(table.text(&judged).contains("geometric mean, plan"));
        assert_eq!(table.judged(&[sheet("a", 2.0)], 1).len(), 1);
    }
}
