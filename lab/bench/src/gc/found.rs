//! What came of the section: a table of medians and ratios, and each goal with its verdict.
//!
//! Every ratio is against libgc's first arm in pairs of the same round. The second arms of libgc and of each
//! plan say how far the same thing is from itself; no verdict is surer than that.

use super::{CALLED, SECTION, drop_in, name, parallel, slices};
use crate::Sheet;
use crate::target::twin;
use crate::timing::goal_table;
use vellum_measure::{Bound, Goal, Interval, Verdict, median, paired_ratio};
use vellum_papers::smith::{CLIENTS, Collector, Plan};
use vellum_report::Table;

/// Drawings for an interval.
const RESAMPLES: usize = 1000;

const CPU: &str = "cpu_ns";
/// By the client's own account: the figure from outside is never less than this process's own peak.
const PEAK: &str = "peak_bytes";
const OBJECT: &str = "object_ns";
const LIVE_OBJECT: &str = "live_object_ns";

/// What a small program's cell is judged by: a figure, how it is called, what it is divided by for people,
/// and the most of libgc's that it may be.
const DEMANDS: [(&str, &str, &str, f64, f64); 10] = [
    ("short-16", OBJECT, "short-lived 16-byte objects, ns each", 1.0, 0.5),
    ("short-64", OBJECT, "short-lived 64-byte objects, ns each", 1.0, 0.5),
    ("trees", CPU, "binary trees, 64 MiB live, CPU ms", 1e6, 0.65),
    ("lists", CPU, "mergesort of a list, CPU ms", 1e6, 0.65),
    ("whole-tree", LIVE_OBJECT, "128 MB collected, a tree, ns a live object", 1.0, 0.5),
    ("whole-list", LIVE_OBJECT, "128 MB collected, a list, ns a live object", 1.0, 0.5),
    ("short-16", PEAK, "peak memory, short-lived 16-byte, MiB", MIB, 1.0),
    ("short-64", PEAK, "peak memory, short-lived 64-byte, MiB", MIB, 1.0),
    ("trees", PEAK, "peak memory, binary trees, MiB", MIB, 1.0),
    ("lists", PEAK, "peak memory, mergesort, MiB", MIB, 1.0),
];
const MIB: f64 = 1048576.0;
/// After nine tenths of the heap have died, this multiple of the live bytes may be resident, beside …
const RESIDENT_MAX: f64 = 1.2;
/// … what a process has anyhow.
const RESIDENT_PLUS: f64 = 4.0 * MIB;
/// No client may be slower than under libgc …
const CLIENT_MAX: f64 = 1.0;
/// … and together they are to take so much of its time, by plan.
const CLIENTS_MAX: [(Plan, f64); 2] = [(Plan::MarkSweep, 0.75), (Plan::MostlyCopying, 0.6)];

/// The plans shown; those that [`CLIENTS_MAX`] names are judged. That with generations is measured where
/// memory is short (`vellum papers cooper`).
const PLANS: [Plan; 3] = [Plan::MarkSweep, Plan::MostlyCopying, Plan::Appel];

/// Reads the section's sheets: text with a newline at its end, and the goals. Both are empty if the section
/// was not run.
#[must_use]
pub fn found(sheets: &[Sheet], seed: u64) -> (String, Vec<Goal>) {
    let reader = Reader { sheets, seed };
    if !sheets.iter().any(|sheet| sheet.cell.starts_with(SECTION)) {
        return (String::new(), Vec::new());
    }
    let (table, mut goals) = reader.table();
    goals.extend(reader.returned());
    goals.extend(reader.together());
    let mut text = table.text();
    if let Some((grid, more)) = slices::found(sheets, seed) {
        text = format!("{text}\n{}", grid.text());
        goals.extend(more);
    }
    if let Some(grid) = parallel::found(sheets, seed) {
        text = format!("{text}\n{}", grid.text());
    }
    if let Some((grid, more)) = drop_in::found(sheets, seed) {
        text = format!("{text}\n{}", grid.text());
        goals.extend(more);
    }
    let goals_text = goal_table(&goals).text();
    (format!("{text}\n{goals_text}"), goals)
}

struct Reader<'a> {
    sheets: &'a [Sheet],
    seed: u64,
}

impl Reader<'_> {
    fn sheet(&self, cell: &str) -> Option<&Sheet> {
        self.sheets.iter().find(|sheet| sheet.cell == name(cell))
    }

    fn ratio(&self, cell: &str, arm: &str, over: &str, metric: &str) -> Option<Interval> {
        let sheet = self.sheet(cell)?;
        let pairs = sheet.by_round(arm, metric).into_iter().zip(sheet.by_round(over, metric));
        let pairs: Vec<(f64, f64)> = pairs.filter_map(|(a, b)| Some((a?, b?))).collect();
        paired_ratio(&pairs, RESAMPLES, self.seed)
    }

    /// How far the same thing was from itself, as the larger of the two distances of logarithms.
    fn noise(&self, cell: &str, plan: &str, metric: &str) -> Option<f64> {
        let off = |arm: &str| Some(self.ratio(cell, &twin(arm), arm, metric)?.estimate.ln().abs());
        [off(plan), off(Collector::Libgc.name())].into_iter().flatten().reduce(f64::max)
    }

    fn goal(&self, cell: &str, plan: &str, metric: &str, what: &str, most: f64) -> Option<Goal> {
        self.sheet(cell)?;
        let what = format!("{plan} / libgc, {what}");
        let bound = Bound::AtMost(most);
        let Some(found) = self.ratio(cell, plan, Collector::Libgc.name(), metric) else {
            return Some(Goal::of(what, "", bound, None));
        };
        let verdict = Verdict::of(bound, found.estimate, Some(found), self.noise(cell, plan, metric));
        Some(Goal { what, unit: "", bound, found: Some(found.estimate), verdict })
    }

    fn table(&self) -> (Table, Vec<Goal>) {
        let plans = PLANS.map(|plan| Collector::Vellum(plan).name());
        let judged = CLIENTS_MAX.map(|(plan, _)| Collector::Vellum(plan).name());
        let libgc = Collector::Libgc.name();
        let of_plans = plans.iter().flat_map(|plan| [plan, "/ libgc", "A/A"]);
        let head: Vec<&str> = ["", CALLED, libgc, "A/A"].into_iter().chain(of_plans).collect();
        let mut grid =
            Table::plain(&head, 1).titled("Collectors: medians, ratios to libgc, each arm over itself");
        let mut goals = Vec::new();
        let small = DEMANDS
            .iter()
            .map(|(cell, metric, what, unit, most)| (*cell, *metric, (*what).to_owned(), *unit, Some(*most)));
        let fall = ("fall", "resident_bytes", "resident after nine tenths died, MiB".to_owned(), MIB, None);
        let clients = CLIENTS.iter().map(|client| {
            (
                client.name,
                CPU,
                format!("{}, {} MiB, CPU ms", client.title, client.heap_mib),
                1e6,
                Some(CLIENT_MAX),
            )
        });
        for (cell, metric, what, unit, most) in small.chain([fall]).chain(clients) {
            let Some(sheet) = self.sheet(cell) else { continue };
            let middle = |arm: &str| figure(median(&sheet.values(arm, metric)).map(|value| value / unit));
            let estimate = |found: Option<Interval>| figure(found.map(|found| found.estimate));
            let mut row = vec![what.clone(), middle(CALLED), middle(libgc)];
            row.push(estimate(self.ratio(cell, &twin(libgc), libgc, metric)));
            for plan in plans {
                row.push(middle(plan));
                row.push(estimate(self.ratio(cell, plan, libgc, metric)));
                row.push(estimate(self.ratio(cell, &twin(plan), plan, metric)));
                let most = most.filter(|_| judged.contains(&plan));
                goals.extend(most.and_then(|most| self.goal(cell, plan, metric, &what, most)));
            }
            grid.row(row);
        }
        (grid, goals)
    }

    /// What is resident after the fall, over what lives.
    fn returned(&self) -> Vec<Goal> {
        let Some(sheet) = self.sheet("fall") else { return Vec::new() };
        let goal = |(plan, _): (Plan, f64)| {
            let plan = Collector::Vellum(plan).name();
            let middle = |metric: &str| median(&sheet.values(plan, metric));
            let over = |resident: f64| Some((resident - RESIDENT_PLUS) / middle("live_bytes")?);
            let what = format!("{plan}, resident less 4 MiB over live, after nine tenths died");
            Goal::of(what, "", Bound::AtMost(RESIDENT_MAX), middle("resident_bytes").and_then(over))
        };
        CLIENTS_MAX.map(goal).to_vec()
    }

    /// The eight clients in one figure, if all of them were run.
    fn together(&self) -> Vec<Goal> {
        if CLIENTS.iter().any(|client| self.sheet(client.name).is_none()) {
            return Vec::new();
        }
        let goal = |(plan, most): (Plan, f64)| {
            let plan = Collector::Vellum(plan).name();
            let ratio = |cell| Some(self.ratio(cell, plan, Collector::Libgc.name(), CPU)?.estimate.ln());
            let logs: Option<Vec<f64>> = CLIENTS.iter().map(|client| ratio(client.name)).collect();
            let mean = logs.map(|logs| (logs.iter().sum::<f64>() / logs.len() as f64).exp());
            let what = format!("{plan} / libgc, eight clients at their canonical heaps, geometric mean");
            Goal::of(what, "", Bound::AtMost(most), mean)
        };
        CLIENTS_MAX.map(goal).to_vec()
    }
}

/// Three digits.
fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), vellum_measure::short)
}

#[cfg(test)]
mod tests {
    use super::super::SMALL;
    use super::*;
    use crate::{Metrics, Run};

    fn sheet(cell: &str, arms: &[(&str, f64)]) -> Sheet {
        let runs = |value: f64| {
            (0..3).map(move |round| {
                let mut metrics = Metrics::new();
                metrics.set(CPU, value);
                metrics.set(OBJECT, value);
                Run { round, place: 0, result: Ok(metrics) }
            })
        };
        let arms = arms.iter().map(|(arm, value)| ((*arm).to_owned(), runs(*value).collect()));
        Sheet { cell: name(cell), arms: arms.collect() }
    }

    #[test]
    fn goals_follow_the_ratios_and_name_what_was_not_run() {
        let (text, goals) = found(&[sheet("short-16", &[("libgc", 10.0), ("mark_sweep", 4.0)])], 1);
        let of = |plan: &str| {
            goals.iter().find(|goal| goal.what.starts_with(plan) && goal.what.contains("ns each"))
        };
        let ours = of("mark_sweep").expect("the goal was judged");
        assert!(ours.verdict == Verdict::Met && ours.found.is_some_and(|ratio| (ratio - 0.4).abs() < 1e-9));
        assert_eq!(of("mostly_copying").map(|goal| goal.verdict), Some(Verdict::NoData));
        assert!(text.contains("0.400"), "{text}");
        assert!(!goals.iter().any(|goal| goal.what.contains("geometric")));
    }

    #[test]
    fn the_noise_of_the_run_bounds_what_is_claimed() {
        let arms = [("libgc", 10.0), ("libgc'", 14.0), ("mark_sweep", 4.0), ("mark_sweep'", 4.0)];
        let (_, goals) = found(&[sheet("short-16", &arms)], 1);
        assert_eq!(goals[0].verdict, Verdict::MetWithinNoise);
    }

    #[test]
    fn the_clients_are_one_figure_when_all_are_there() {
        let sheets: Vec<Sheet> = CLIENTS
            .iter()
            .map(|client| sheet(client.name, &[("libgc", 10.0), ("mark_sweep", 5.0)]))
            .collect();
        let (_, goals) = found(&sheets, 1);
        let mean = goals.iter().find(|goal| goal.what.contains("mark_sweep / libgc, eight"));
        assert!(mean.and_then(|goal| goal.found).is_some_and(|mean| (mean - 0.5).abs() < 1e-12));
    }

    #[test]
    fn every_demand_has_its_cell_and_other_sections_say_nothing() {
        for (cell, ..) in DEMANDS {
            assert!(SMALL.iter().any(|small| small.cell == cell), "{cell}");
        }
        assert!(found(&[], 1).1.is_empty());
    }
}
