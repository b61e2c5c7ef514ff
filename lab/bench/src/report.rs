//! The result of the benchmark as JSON: all measurements first, then the tables and verdicts.

use crate::target::Judgement;
use crate::{Judged, Missing, Peer, Sheet, Table, peer};
use serde_json::{Value, json as object};
use vellum_campaign::{Bound, Goal};
use vellum_measure::{Interval, Machine};

/// Name and version of the format. A field's meaning never changes; new ones may come.
pub const SCHEMA: &str = "vellum-bench/1";

/// The whole result as one JSON value.
#[must_use]
pub fn json(
    machine: &Machine,
    (peers, missing): (&[Peer], &[Missing]),
    settings: &[(&str, Value)],
    sheets: &[Sheet],
    tables: &[(Table, Vec<Judged>)],
    goals: &[Goal],
) -> Value {
    let settings: serde_json::Map<String, Value> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    object!({
        "schema": SCHEMA,
        "settings": settings,
        "machine": machine,
        "peers": peers.iter().map(|peer| object!({"name": peer.name, "version": peer.version})).collect::<Vec<_>>(),
        "missing": missing.iter().map(|m| object!({"name": m.name, "cure": m.cure})).collect::<Vec<_>>(),
        "lines": tables.iter().flat_map(|(table, lines)| lines.iter().map(|l| line(table, l))).collect::<Vec<_>>(),
        "goals": goals.iter().map(goal).collect::<Vec<_>>(),
        "runs": sheets.iter().flat_map(runs).collect::<Vec<_>>(),
    })
}

fn line(table: &Table, line: &Judged) -> Value {
    let medians: serde_json::Map<String, Value> =
        line.medians.iter().map(|(arm, value)| (arm.clone(), object!(value))).collect();
    let control = |arm: &str| {
        line.controls.iter().flatten().find(|(name, _)| name == arm).map(|(_, control)| interval(control))
    };
    object!({
        "table": table.title,
        "metric": table.metric,
        "label": line.label,
        "cell": line.cell,
        "medians": medians,
        "control_glibc": control(peer::GLIBC),
        "control_vellum": control(peer::VELLUM),
        "controls": line.controls.iter().flatten().map(|(arm, c)| (arm.clone(), interval(c))).collect::<serde_json::Map<_, _>>(),
        "target": line.judgement.as_ref().map(target),
    })
}

fn goal(goal: &Goal) -> Value {
    object!({
        "what": goal.what,
        "unit": goal.unit.trim(),
        "found": goal.found,
        "limit": goal.bound.limit(),
        "should_be": if matches!(goal.bound, Bound::AtLeast(_)) { "above" } else { "below" },
        "verdict": goal.verdict.word(),
    })
}

fn target(judged: &Judgement) -> Value {
    object!({
        "against": judged.against,
        "ratio": judged.ratio,
        "interval": judged.interval.as_ref().map(interval),
        "limit": judged.bound.limit(),
        "ratio_should_be": if matches!(judged.bound, Bound::AtLeast(_)) { "above" } else { "below" },
        "verdict": judged.verdict.word(),
    })
}

fn interval(interval: &Interval) -> Value {
    object!({"estimate": interval.estimate, "low": interval.low, "high": interval.high})
}

fn runs(sheet: &Sheet) -> Vec<Value> {
    let all = sheet.arms.iter().flat_map(|(arm, runs)| runs.iter().map(move |run| (arm, run)));
    let mut ordered: Vec<_> = all.collect();
    ordered.sort_by_key(|(_, run)| (run.round, run.place));
    ordered
        .into_iter()
        .map(|(arm, run)| {
            let (metrics, failure) = match &run.result {
                Ok(metrics) => (object!(metrics), Value::Null),
                Err(ended) => (Value::Null, object!(ended.to_string())),
            };
            object!({
                "cell": sheet.cell, "arm": arm, "round": run.round, "place": run.place,
                "metrics": metrics, "failure": failure,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ended, Metrics, Run};

    #[test]
    fn json_has_every_run_in_order() {
        let mut metrics = Metrics::new();
        metrics.set("ns", 4.0);
        let arms = vec![
            ("glibc".to_owned(), vec![Run { round: 0, place: 1, result: Ok(metrics) }]),
            ("vellum".to_owned(), vec![Run { round: 0, place: 0, result: Err(Ended::TooLong(9)) }]),
        ];
        let sheets = [Sheet { cell: "x".to_owned(), arms }];
        let value = json(&Machine::default(), (&[], &[]), &[("seed", object!(1))], &sheets, &[], &[]);
        assert_eq!(value["schema"], SCHEMA);
        assert_eq!(value["settings"]["seed"], 1);
        assert_eq!(value["runs"][0]["arm"], "vellum");
        assert_eq!(value["runs"][0]["failure"], "ended after 9 s without a result");
        assert_eq!(value["runs"][1]["metrics"]["ns"], 4.0);
    }
}
