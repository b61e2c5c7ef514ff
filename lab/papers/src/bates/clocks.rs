//! Bates 1999: BASE (the time between two stamps) under each clock of this machine.
//!
//! The result is the share of a thousand empty timings at one value, within one step of the clock. The goal
//! is the paper's result, 994 of 1000, for every clock without a system call. The clock of a thread's
//! processor time makes a system call and is shown for comparison.

use super::Found;
use super::bases::{Bases, Path, figures, middle, raw, span};
use crate::{Bound, Finding, Goal, Table, Value};
use serde_json::json;
use vellum_measure::Layers;
use vellum_timing::clock::ClockKind;

/// Share of a thousand timings at the mode, within a step of the clock, in percent.
pub(super) const AT_MODE_MIN: f64 = 99.4;

pub(super) fn run(bases: &Bases) -> Found {
    let mut table = Table::new(
        "BASE: the time of nothing, 1000 observations a round; medians over the rounds",
        &[
            ("clock", "clock"),
            ("rounds", "rounds"),
            ("mean_ns", "mean|ns"),
            ("base_ns", "base|ns"),
            ("max_ns", "max|ns"),
            ("std_ns", "std|ns"),
            ("step_ns", "step|ns"),
            ("at_mode_percent", "at mode|± step, %"),
            ("at_mode_worst_percent", "worst|round, %"),
            ("layers", "layers of|outliers"),
            ("kept_percent", "kept|%"),
        ],
    );
    let (mut goals, mut runs) = (Vec::new(), Vec::new());
    for rounds in bases.rounds.iter().filter(|rounds| matches!(rounds.path, Path::Builtin(_))) {
        let all = &rounds.series;
        let shares: Vec<f64> =
            all.iter().filter_map(figures).filter_map(|figures| figures.at_mode).map(|s| s * 100.0).collect();
        let shares_span = span(&shares);
        let base = all.first().and_then(|series| series.base.as_ref());
        let layers: Vec<Layers> = all.iter().map(|series| Layers::peel_all(&raw(series))).collect();
        let over =
            |of: &dyn Fn(&Layers) -> f64| vellum_measure::median(&layers.iter().map(of).collect::<Vec<_>>());
        table.rows.push(vec![
            Value::text(rounds.path.name()),
            Value::Count(all.len()),
            Value::of(middle(all, |figures| Some(figures.mean))),
            Value::of(base.map(|base| base.min)),
            Value::of(middle(all, |figures| Some(figures.max))),
            Value::of(middle(all, |figures| Some(figures.std))),
            Value::of(base.map(|base| base.step)),
            Value::of(shares_span.map(|share| share.estimate)),
            Value::of(shares_span.map(|share| share.low)),
            Value::of(over(&|layers| layers.count() as f64)),
            Value::of(over(&|layers| layers.kept_share() * 100.0)),
        ]);
        if rounds.path != Path::Builtin(ClockKind::ThreadCpu) {
            let what = format!("{}, BASE at the mode ± a step", rounds.path.name());
            goals.push(Goal::within(what, " %", Bound::AtLeast(AT_MODE_MIN), shares_span));
        }
        for (round, series) in all.iter().enumerate() {
            runs.extend(figures(series).map(|figures| {
                json!({
                    "cell": "BASE", "arm": rounds.path.name(), "round": round,
                    "metrics": {
                        "mean_ns": figures.mean, "min_ns": figures.min, "max_ns": figures.max,
                        "std_ns": figures.std, "at_mode": figures.at_mode,
                    },
                })
            }));
        }
    }
    let mut notes = vec![
        "base: the least that is more than half a step, of the first round; it is what suites subtract".into(),
        "a goal is judged by the median round; met~ and missed~: the worst or best round says otherwise".into(),
        "thread-cpu makes a system call for each stamp, as the source's first stamp did; no goal is set for it".into(),
    ];
    notes.extend(bases.missing.iter().map(|missing| format!("not here: {missing}")));
    let finding = Finding {
        name: "clocks".to_owned(),
        title: "BASE under each clock",
        source: "\"The Measurement Process\", repeated",
        published: "Published: with a builtin stamp, 994 of 1000 observations at one value of a clock of microseconds.",
        tables: vec![table],
        notes,
        goals,
        figures: Vec::new(),
        runs,
    };
    Found { finding, drawings: Vec::new() }
}
