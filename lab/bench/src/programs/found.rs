//! What came of the programs: CPU time and peak memory over glibc's, and the goals.

use super::SECTION;
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
/// "No row slower than glibc beyond noise": a row may be level.
const ROW_MAX: f64 = 1.0;
/// "Geomean at most 0.92, peak at most 0.95."
const CPU_MAX: f64 = 0.92;
const PEAK_MAX: f64 = 0.95;

/// Both metrics in one table, for Markdown: what a reader wants to see first.
#[must_use]
pub fn markdown(sheets: &[Sheet], seed: u64) -> String {
    let sheets: Vec<&Sheet> = sheets.iter().filter(|sheet| sheet.cell.starts_with(SECTION)).collect();
    let others = others(&sheets, CPU);
    let columns: Vec<(String, &str)> = [("Vellum".to_owned(), peer::VELLUM)]
        .into_iter()
        .chain(others.iter().map(|arm| ((*arm).to_owned(), *arm)))
        .collect();
    let mut heads = vec![String::new()];
    for what in ["CPU", "peak"] {
        heads.push(format!("{what}: glibc"));
        heads.extend(columns.iter().map(|(name, _)| name.clone()));
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::plain(&heads, 1);
    let own = |sheet: &Sheet, metric, scale: f64, unit| {
        let value = median(&sheet.values(peer::GLIBC, metric)).map(|value| value / scale);
        format!("{} {unit}", fixed(value, 0))
    };
    for sheet in &sheets {
        let mut cells = vec![name(sheet).to_owned()];
        for (metric, scale, unit) in [(CPU, 1e6, "ms"), (PEAK, MIB, "MiB")] {
            cells.push(own(sheet, metric, scale, unit));
            let estimate = |arm| fixed(ratio(sheet, arm, metric, seed).map(|found| found.estimate), 2);
            cells.extend(columns.iter().map(|(_, arm)| estimate(arm)));
        }
        table.row(cells);
    }
    let mut means = vec!["geometric mean".to_owned()];
    for metric in [CPU, PEAK] {
        means.push(String::new());
        means.extend(columns.iter().map(|(_, arm)| fixed(geometric(&sheets, arm, metric, seed), 2)));
    }
    table.row(means);
    table.markdown()
}

/// Reads the section's sheets: tables, and goals. Both are empty if no cell of it was run.
#[must_use]
pub fn found(sheets: &[Sheet], seed: u64) -> (Vec<Table>, Vec<Goal>) {
    let sheets: Vec<&Sheet> = sheets.iter().filter(|sheet| sheet.cell.starts_with(SECTION)).collect();
    if sheets.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut goals: Vec<Goal> = sheets.iter().map(|sheet| row_goal(sheet, seed)).collect();
    for (metric, what, most) in
        [(CPU, "CPU time over glibc's", CPU_MAX), (PEAK, "peak memory over glibc's", PEAK_MAX)]
    {
        let mean = geometric(&sheets, peer::VELLUM, metric, seed);
        goals.push(Goal::of(format!("{what}, geometric mean"), "x", Bound::AtMost(most), mean));
    }
    let missed = goals.iter().filter(|goal| goal.verdict == Verdict::Missed || goal.what.contains("mean"));
    let missed: Vec<Goal> = missed.cloned().collect();
    let titles = [(CPU, 1e6, "CPU time, glibc's in ms"), (PEAK, MIB, "Peak memory, glibc's in MiB")];
    let mut tables: Vec<Table> = titles
        .map(|(metric, scale, title)| {
            table(&sheets, metric, scale, &format!("{title}; the others over it, with 95 % intervals"), seed)
        })
        .into();
    tables.push(goal_table(&missed));
    (tables, goals)
}

fn name(sheet: &Sheet) -> &str {
    sheet.cell.strip_prefix(SECTION).map_or(&*sheet.cell, |rest| rest.trim_start_matches('-'))
}

/// An arm's figures over glibc's, round by round.
fn ratio(sheet: &Sheet, arm: &str, metric: &str, seed: u64) -> Option<Interval> {
    let pairs = sheet.by_round(arm, metric).into_iter().zip(sheet.by_round(peer::GLIBC, metric));
    let pairs: Vec<(f64, f64)> = pairs.filter_map(|(a, b)| Some((a?, b?))).collect();
    paired_ratio(&pairs, RESAMPLES, seed)
}

fn row_goal(sheet: &Sheet, seed: u64) -> Goal {
    let what = format!("{}: CPU time over glibc's", name(sheet));
    let bound = Bound::AtMost(ROW_MAX);
    let Some(found) = ratio(sheet, peer::VELLUM, CPU, seed) else { return Goal::of(what, "x", bound, None) };
    let control = ratio(sheet, &twin(peer::GLIBC), CPU, seed);
    let noise = control.map(|control| control.estimate.ln().abs());
    let verdict = Verdict::of(bound, found.estimate, Some(found), noise);
    Goal { what, unit: "x", bound, found: Some(found.estimate), verdict }
}

/// Over the programs that gave a figure.
fn geometric(sheets: &[&Sheet], arm: &str, metric: &str, seed: u64) -> Option<f64> {
    let ratios = sheets.iter().filter_map(|sheet| ratio(sheet, arm, metric, seed));
    let logs: Vec<f64> = ratios.map(|ratio| ratio.estimate.ln()).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// The peers beside glibc and Vellum that were run.
fn others(sheets: &[&Sheet], metric: &str) -> Vec<&'static str> {
    let has = |arm: &&str| sheets.iter().any(|sheet| !sheet.values(arm, metric).is_empty());
    peer::NAMES.iter().copied().filter(|arm| ![peer::GLIBC, peer::VELLUM].contains(arm)).filter(has).collect()
}

fn table(sheets: &[&Sheet], metric: &str, scale: f64, title: &str, seed: u64) -> Table {
    let twin = twin(peer::GLIBC);
    let others = others(sheets, metric);
    let heads: Vec<&str> =
        ["", "glibc", "A/A", "Vellum", "95 %"].into_iter().chain(others.iter().copied()).collect();
    let mut table = Table::plain(&heads, 1).titled(title);
    let estimate = |interval: Option<Interval>| fixed(interval.map(|found| found.estimate), 2);
    for sheet in sheets {
        let glibc = median(&sheet.values(peer::GLIBC, metric)).map(|value| value / scale);
        let found = ratio(sheet, peer::VELLUM, metric, seed);
        let interval = found.map_or_else(String::new, |found| format!("{:.2}–{:.2}", found.low, found.high));
        let mut cells = vec![
            name(sheet).to_owned(),
            fixed(glibc, 0),
            estimate(ratio(sheet, &twin, metric, seed)),
            estimate(found),
            interval,
        ];
        cells.extend(others.iter().map(|arm| estimate(ratio(sheet, arm, metric, seed))));
        table.row(cells);
    }
    let mean = |arm: &str| fixed(geometric(sheets, arm, metric, seed), 2);
    let mut means =
        vec!["geometric mean".to_owned(), String::new(), mean(&twin), mean(peer::VELLUM), String::new()];
    means.extend(others.iter().map(|arm| mean(arm)));
    table.row(means);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metrics, Run};

    fn sheet(program: &str, vellum: f64) -> Sheet {
        let arm = |label: &str, cpu: f64| {
            let run = |round| {
                let mut metrics = Metrics::new();
                metrics.set(CPU, cpu);
                metrics.set(PEAK, MIB);
                Run { round, place: 0, result: Ok(metrics) }
            };
            (label.to_owned(), (0..5).map(run).collect())
        };
        Sheet {
            cell: format!("{SECTION}-{program}"),
            arms: [arm(peer::GLIBC, 1e9), arm(&twin(peer::GLIBC), 1e9), arm(peer::VELLUM, vellum)]
                .into_iter()
                .collect(),
        }
    }

    #[test]
    fn each_program_has_its_row_and_goal_and_the_means_are_geometric() {
        let (tables, goals) = found(&[sheet("fast", 0.5e9), sheet("slow", 2e9)], 1);
        let verdicts: Vec<Verdict> = goals.iter().map(|goal| goal.verdict).collect();
        assert_eq!(verdicts, [Verdict::Met, Verdict::Missed, Verdict::Missed, Verdict::Missed]);
        assert!((goals[2].found.unwrap() - 1.0).abs() < 1e-9);
        let text = tables[0].text();
        assert!(text.contains("fast") && text.contains("geometric mean"), "{text}");
        assert!(tables[2].text().contains("slow: CPU time") && !tables[2].text().contains("fast"));
        assert!(found(&[], 1).1.is_empty());
        let text = markdown(&[sheet("fast", 0.5e9)], 1);
        assert!(text.contains("| fast | 1000 ms | 0.50 | 1 MiB |"), "{text}");
    }
}
