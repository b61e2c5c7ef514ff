//! What came of the cells: CPU time and peak memory with a profile over those without, and the goals.

use super::{HEAPTRACK, INTERVALS, MEMRAY, SECTION};
use crate::target::twin;
use crate::timing::goal_table;
use crate::{Sheet, peer};
use vellum_measure::{Bound, Goal, Interval, Verdict, median, paired_ratio};
use vellum_report::Table;
use vellum_report::units::fixed;

/// Drawings for an interval.
const RESAMPLES: usize = 1000;
const CPU: &str = "process_cpu_ns";
const PEAK: &str = "process_peak_bytes";
const MIB: f64 = 1048576.0;
/// What a profile may cost of CPU time: "at 512 KiB at most 1 %, at 32 KiB at most 5 %, over ten programs".
const COST_MAX: [f64; 2] = [1.01, 1.05];
/// "Peak RSS +1 MiB at most".
const PEAK_PLUS: f64 = 1.0;

/// Reads the section's sheets: tables, and goals. Both are empty if no cell of it was run.
#[must_use]
pub fn found(sheets: &[Sheet], seed: u64) -> (String, Vec<Goal>) {
    let sheets: Vec<&Sheet> = sheets.iter().filter(|sheet| sheet.cell.starts_with(SECTION)).collect();
    if sheets.is_empty() {
        return (String::new(), Vec::new());
    }
    let mut goals = Vec::new();
    let tables = [cpu(&sheets, seed), peaks(&sheets)];
    for ((label, _), most) in INTERVALS.into_iter().zip(COST_MAX) {
        let what = format!("CPU time with a sample every {label}, over that without, all programs");
        goals.push(over_all(what, &sheets, label, most, seed));
    }
    for (label, _) in INTERVALS {
        let added: Vec<f64> = sheets.iter().filter_map(|sheet| added(sheet, label, peer::VELLUM)).collect();
        let what = format!("peak memory added by a sample every {label}, median program");
        goals.push(Goal::of(what, " MiB", Bound::AtMost(PEAK_PLUS), median(&added)));
    }
    let mut text: String = tables.iter().map(|table| table.text() + "\n").collect();
    for sheet in sheets {
        for (arm, _) in &sheet.arms {
            if let Some(ended) = sheet.failure(arm) {
                text += &format!("no figure from {arm}, {}: {ended}\n", sheet.cell);
            }
        }
    }
    (text + &goal_table(&goals).text(), goals)
}

fn ratio(sheet: &Sheet, arm: &str, over: &str, seed: u64) -> Option<Interval> {
    let pairs = sheet.by_round(arm, CPU).into_iter().zip(sheet.by_round(over, CPU));
    let pairs: Vec<(f64, f64)> = pairs.filter_map(|(a, b)| Some((a?, b?))).collect();
    paired_ratio(&pairs, RESAMPLES, seed)
}

/// The sums over all programs, round by round; the control says how far the same is from itself.
fn over_all(what: String, sheets: &[&Sheet], label: &str, most: f64, seed: u64) -> Goal {
    let sum = |arm: &str| -> Vec<Option<f64>> {
        let rounds = sheets.iter().map(|sheet| sheet.by_round(arm, CPU));
        rounds
            .reduce(|sums, round| {
                sums.into_iter().zip(round).map(|(sum, value)| Some(sum? + value?)).collect()
            })
            .unwrap_or_default()
    };
    let ratio = |arm: &str| {
        let pairs: Vec<(f64, f64)> =
            sum(arm).into_iter().zip(sum(peer::VELLUM)).filter_map(|(a, b)| Some((a?, b?))).collect();
        paired_ratio(&pairs, RESAMPLES, seed)
    };
    let bound = Bound::AtMost(most);
    let Some(found) = ratio(label) else { return Goal::of(what, "x", bound, None) };
    let noise = ratio(&twin(peer::VELLUM)).map(|control| control.estimate.ln().abs());
    let verdict = Verdict::of(bound, found.estimate, Some(found), noise);
    Goal { what, unit: "x", bound, found: Some(found.estimate), verdict }
}

fn cpu(sheets: &[&Sheet], seed: u64) -> Table {
    let [(often, _), (oftener, _)] = INTERVALS;
    let heads = ["", "glibc ms", "vellum ms", "A/A", often, oftener, HEAPTRACK, MEMRAY];
    let title = "CPU time of programs: medians; and with a profile over without (ours over vellum, others over glibc)";
    let mut table = Table::plain(&heads, 1).titled(title);
    for sheet in sheets {
        let middle = |arm: &str| fixed(median(&sheet.values(arm, CPU)).map(|value| value / 1e6), 0);
        let times =
            |arm: &str, over: &str| fixed(ratio(sheet, arm, over, seed).map(|found| found.estimate), 3);
        table.row(vec![
            sheet.cell.clone(),
            middle(peer::GLIBC),
            middle(peer::VELLUM),
            times(&twin(peer::VELLUM), peer::VELLUM),
            times(often, peer::VELLUM),
            times(oftener, peer::VELLUM),
            times(HEAPTRACK, peer::GLIBC),
            times(MEMRAY, peer::GLIBC),
        ]);
    }
    table
}

/// The median of an arm's peak less that of another, in MiB.
fn added(sheet: &Sheet, arm: &str, over: &str) -> Option<f64> {
    Some((median(&sheet.values(arm, PEAK))? - median(&sheet.values(over, PEAK))?) / MIB)
}

fn peaks(sheets: &[&Sheet]) -> Table {
    let [(often, _), (oftener, _)] = INTERVALS;
    let heads = ["", "glibc", "vellum", "A/A", often, oftener, HEAPTRACK, MEMRAY];
    let title = "Peak resident memory in MiB: medians; and what a profile adds";
    let mut table = Table::plain(&heads, 1).titled(title);
    for sheet in sheets {
        let middle = |arm: &str| fixed(median(&sheet.values(arm, PEAK)).map(|value| value / MIB), 1);
        let plus = |arm: &str, over: &str| fixed(added(sheet, arm, over), 1);
        table.row(vec![
            sheet.cell.clone(),
            middle(peer::GLIBC),
            middle(peer::VELLUM),
            plus(&twin(peer::VELLUM), peer::VELLUM),
            plus(often, peer::VELLUM),
            plus(oftener, peer::VELLUM),
            plus(HEAPTRACK, peer::GLIBC),
            plus(MEMRAY, peer::GLIBC),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metrics, Run};

    #[test]
    fn costs_are_of_all_programs_together() {
        let arm = |label: &str, cpu: f64, peak: f64| {
            let run = |round| {
                let mut metrics = Metrics::new();
                metrics.set(CPU, cpu);
                metrics.set(PEAK, peak * MIB);
                Run { round, place: 0, result: Ok(metrics) }
            };
            (label.to_owned(), (0..3).map(run).collect())
        };
        let sheet = |cell: &str, more: f64| Sheet {
            cell: format!("{SECTION}-{cell}"),
            arms: [
                arm(peer::VELLUM, 1e9, 10.0),
                arm(&twin(peer::VELLUM), 1e9, 10.0),
                arm("512 KiB", 1e9 + more, 10.5),
                arm("32 KiB", 1e9 + more, 12.0),
            ]
            .into_iter()
            .collect(),
        };
        // One costs nothing and one 3 %: of both together 1.5 %.
        let (text, goals) = found(&[sheet("a", 0.0), sheet("b", 3e7)], 1);
        let verdicts: Vec<Verdict> = goals.iter().map(|goal| goal.verdict).collect();
        assert_eq!(verdicts, [Verdict::Missed, Verdict::Met, Verdict::Met, Verdict::Missed], "{text}");
        assert!((goals[0].found.unwrap() - 1.015).abs() < 1e-9);
        assert!(found(&[], 1).1.is_empty());
    }
}
