//! Bates 1999, Figures 10 to 12: BASE (the time between two stamps) when a stamp takes a few instructions.
//!
//! The paper's first stamp was a read from a file (`slow.rs`). When a builtin function replaced the read,
//! 994 of 1000 empty timings had the same value. When also the collector was held off (kept from running),
//! 994 timings were within a step of the clock, and the largest was 12 µs. Here the builtin stamp is the
//! best clock of this machine, and one call holds off all collectors of the process. No collector runs in
//! this experiment, so Figure 12 only repeats Figure 11; `collector.rs` has Figure 12 with a collector.

use super::bases::{Bases, Path, figures, middle, raw, span};
use super::drawn;
use crate::{Bound, Finding, Goal, Table, Value};
use serde_json::json;
use vellum_measure::{Series, Unit};
use vellum_report::plot::{Kind, Plot, Subject};

/// Share of a thousand timings at the mode, within a step of the clock, in percent: the paper's result.
const AT_MODE_MIN: f64 = 99.4;

pub(super) fn run(bases: &Bases) -> Finding {
    let builtin = Path::Builtin(bases.best.kind());
    let mut table = Table::new(
        "BASE, 1000 observations a round",
        &[
            ("stamp", "stamp"),
            ("mean_ns", "mean|ns"),
            ("min_ns", "min|ns"),
            ("max_ns", "max|ns"),
            ("std_ns", "std|ns"),
            ("at_mode_percent", "at mode|± step, %"),
            ("at_mode_worst_percent", "worst|round, %"),
        ],
    );
    let us = |us: f64| Value::Number(us * 1e3);
    let published = |name: &str, min: Value, max: Value, at_mode: f64| {
        let name = Value::text(format!("published: {name}"));
        vec![name, Value::Nothing, min, max, Value::Nothing, Value::Number(at_mode), Value::Nothing]
    };
    table.rows.push(vec![
        Value::text("published: slow"),
        us(486.0),
        us(402.0),
        us(9053.0),
        us(499.0),
        Value::Nothing,
        Value::Nothing,
    ]);
    table.rows.push(published("builtin", us(6.0), Value::Nothing, 99.4));
    // The paper has five timings at 12 µs and one at 8. The others are at 6 or 7, one step of its clock
    // apart.
    table.rows.push(published("builtin, collector held", us(6.0), us(12.0), 99.4));
    let mut goals = Vec::new();
    let mut runs = Vec::new();
    for (path, words) in [
        (Path::Slow, "here: slow"),
        (builtin, "here: builtin"),
        (Path::Held, "here: builtin, collectors held"),
    ] {
        let rounds = bases.of(path);
        let shares = rounds.iter().filter_map(figures).filter_map(|figures| Some(figures.at_mode? * 100.0));
        let shares = span(&shares.collect::<Vec<_>>());
        table.rows.push(vec![
            Value::text(words),
            Value::of(middle(rounds, |figures| Some(figures.mean))),
            Value::of(middle(rounds, |figures| Some(figures.min))),
            Value::of(middle(rounds, |figures| Some(figures.max))),
            Value::of(middle(rounds, |figures| Some(figures.std))),
            Value::of(shares.map(|share| share.estimate)),
            Value::of(shares.map(|share| share.low)),
        ]);
        if path != Path::Slow {
            goals.push(Goal::within(
                format!("{words}, at the mode ± a step"),
                " %",
                Bound::AtLeast(AT_MODE_MIN),
                shares,
            ));
        }
        for (round, series) in rounds.iter().enumerate() {
            runs.push(json!({ "cell": "BASE", "arm": path.name(), "round": round, "metrics": {
                "values_ns": raw(series),
            }}));
        }
    }
    let notes = vec![
        format!(
            "the builtin stamp is {} (step {})",
            bases.best.kind(),
            Unit::Nanoseconds.scaled(bases.best.step_ns())
        ),
        "no collector is at work while these are made, so that holding collectors off changes nothing: see the experiment `collector`".into(),
    ];
    Finding {
        drawings: drawings(bases.of(builtin), bases.of(Path::Held)),
        tables: vec![table],
        goals,
        runs,
        ..Finding::new(
            "builtin",
            "BASE with a stamp of a few instructions",
            "Figures 10 to 12",
            "Published: with a builtin stamp 994 of 1000 observations at 6 µs; with the collector held off five at 12 µs, one \
            at 8 µs, the other 994 at 6 or 7 µs.",
            notes,
        )
    }
}

fn drawings(builtin: &[Series], held: &[Series]) -> Vec<(&'static str, Plot)> {
    let plot = |kind, rounds: &[Series], title: &str| {
        let subjects = rounds.iter().take(1).map(|series| Subject::new("builtin stamp", raw(series)));
        Plot::new(kind, Series::TIME, Unit::Nanoseconds, subjects.collect()).map(|plot| plot.title(title))
    };
    drawn([
        ("bates-figure10", plot(Kind::Order, builtin, "Figure 10: BASE, builtin stamp")),
        ("bates-figure11", plot(Kind::Histogram, builtin, "Figure 11: where BASE lies, builtin stamp")),
        ("bates-figure12", plot(Kind::Histogram, held, "Figure 12: the same, collectors held off")),
    ])
}
