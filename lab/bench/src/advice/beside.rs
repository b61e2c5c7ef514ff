//! The table that compares Vellum's recommended memory limit with three others: the program's peak memory,
//! the limit by the Kubernetes recommender's rule, and the limit that a loop like Meta's Senpai finds
//! (`rivals.rs` has these two).
//!
//! Limits are compared at equal cost: a limit that slows a program by more than allowed is replaced by the
//! program's peak memory.

use super::COST_MAX;
use super::run::Took;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use vellum_measure::Interval;
use vellum_papers::{Bound, Goal, Table, Value};

/// Goal: the sum of Vellum's limits, over the smallest sum of a rival.
const LESS: f64 = 0.75;
const MIB: f64 = (1 << 20) as f64;

pub(super) fn table() -> Table {
    Table::new(
        "Beside others: memory and CPU time over all",
        &[
            ("program", "program"),
            ("give_mib", "give,|MiB"),
            ("peak_mib", "peak,|MiB"),
            ("recommended_mib", "recom-|mender"),
            ("recommended", "its cost"),
            ("senpai_mib", "Senpai-|like"),
            ("senpai", "its cost"),
        ],
    )
}

/// A program's row; `runs` are those without a limit, with the recommender's limit and with the loop.
pub(super) fn row(
    name: &str,
    give: u64,
    runs: [&Vec<Took>; 3],
    ratio: impl Fn(&[Took]) -> Option<Interval>,
) -> Vec<Value> {
    let [all, recommended, looped] = runs;
    let median = |runs: &[Took], of: fn(&Took) -> f64| {
        Value::of(vellum_measure::median(&runs.iter().map(of).collect::<Vec<_>>()))
    };
    vec![
        Value::text(name),
        Value::Number(give as f64 / MIB),
        median(all, |took| took.ran.charged as f64 / MIB),
        median(all, |took| took.recommended as f64 / MIB),
        Value::ratio(ratio(recommended)),
        median(looped, |took| took.settled as f64 / MIB),
        Value::ratio(ratio(looped)),
    ]
}

/// The goal over all programs that were run.
pub(super) fn goal(runs: &[Json]) -> Option<Goal> {
    let mut cells: BTreeMap<&str, BTreeMap<&str, Vec<&Json>>> = BTreeMap::new();
    for run in runs {
        let (cell, arm) = (run["cell"].as_str()?, run["arm"].as_str()?);
        cells.entry(cell).or_default().entry(arm).or_default().push(&run["metrics"]);
    }
    let (mut advised, mut others) = (0.0, [0.0; 3]);
    for arms in cells.values() {
        let median = |arm: &str, of: &dyn Fn(&Json) -> f64| {
            let of: Vec<f64> = arms.get(arm)?.iter().map(|metrics| of(metrics)).collect();
            vellum_measure::median(&of)
        };
        let number = |name: &'static str| move |metrics: &Json| metrics[name].as_f64().unwrap_or(f64::NAN);
        let cpu = |metrics: &Json| number("user_ns")(metrics) + number("system_ns")(metrics);
        let peak = median("all", &number("charged_bytes"))?;
        let at_equal_cost = |arm: &str, gives: f64| {
            let cost = median(arm, &cpu)? / median("all", &cpu)?;
            let cut = arms.get(arm)?.iter().any(|metrics| metrics["cut"] == true);
            Some(if cost <= COST_MAX && !cut { gives } else { peak })
        };
        advised += at_equal_cost("given", median("given", &number("give_bytes"))?)?;
        others[0] += peak;
        others[1] += at_equal_cost("recommender", median("all", &number("recommended_bytes"))?)?;
        others[2] += at_equal_cost("senpai-like", median("senpai-like", &number("settled_bytes"))?)?;
    }
    let least = others.into_iter().reduce(f64::min)?;
    (least > 0.0).then(|| {
        let ratio = advised / least;
        let interval = Interval { estimate: ratio, low: ratio, high: ratio };
        let what =
            format!("all programs: memory advised over the least of others at equal cost ({})", cells.len());
        Goal::within(what, "x", Bound::AtMost(LESS), Some(interval))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rival_over_the_cost_limit_counts_with_the_peak() {
        let run = |arm: &str, cpu: f64| {
            json!({ "cell": "advice-x", "arm": arm, "round": 0, "metrics": {
                "give_bytes": 60, "user_ns": cpu, "system_ns": 0.0, "charged_bytes": 100, "recommended_bytes": 50,
                "settled_bytes": 90, "cut": false,
            }})
        };
        let runs = |recommended: f64| {
            [run("all", 1.0), run("given", 1.01), run("recommender", recommended), run("senpai-like", 1.02)]
        };
        let said = |recommended| format!("{:?}", goal(&runs(recommended)).unwrap());
        assert!(said(1.0).contains("1.2") && said(2.0).contains("0.66"), "{} {}", said(1.0), said(2.0));
        assert!(goal(&[]).is_none());
    }
}
