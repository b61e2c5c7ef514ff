//! Bates 1999, Figures 1 to 4: BASE (the time between two stamps), each stamp a system call and a conversion
//! from text.
//!
//! The paper's first stamp took 402 to 9053 µs. A plot of a thousand stamps showed two more levels above
//! the lowest, without an explanation; weeks of experiment found the causes. This file makes such stamps
//! (`stamp.rs`). It reports the causes beside the figures: the events that delayed each outlier, and the
//! periodic disturbances. A thousand stamps take only milliseconds here (half a second in the paper), too
//! little to find a period. Periods are therefore sought in a longer series.

use super::bases::{Bases, Path, figures, middle, raw, slow_stamps};
use super::drawn;
use super::stamp::{FILE, SlowStamp};
use crate::finding::table_by;
use crate::{Bound, Finding, Goal, Progress, Scale, Table, Value};
use serde_json::json;
use vellum_measure::{Attribution, Known, Layers, Series, Spectrum, Unit};
use vellum_report::plot::{Kind, Plot, Subject};
use vellum_timing::clock::Clock;

/// The paper's figures of its thousand: mean, min, max, std, in microseconds.
const PUBLISHED_US: [f64; 4] = [486.0, 402.0, 9053.0, 499.0];
/// Bound of the ratio of the slow to the builtin stamp. The paper's was 67 (402 µs and 6 µs).
const QUICKER_MIN: f64 = 10.0;
const LAYERS_SHOWN: usize = 3;

pub(super) fn run(bases: &Bases, scale: Scale, progress: &mut dyn FnMut(Progress<'_>)) -> Finding {
    let rounds = bases.of(Path::Slow);
    let mut tables = vec![figures_table(rounds)];
    let mut notes = Vec::new();
    let mut drawings = Vec::new();
    if let Some(first) = rounds.first() {
        let layers = Layers::peel_all(&raw(first));
        tables.push(layers_table(&layers));
        let attribution = Attribution::of(&first.observations, &first.marks, &layers, &[]);
        drawings = figures_1_to_4(first, attribution.as_ref());
    }
    progress(Progress { experiment: "slow", done: 0, total: 1, what: "slow stamps, longer" });
    match longer(&bases.best, scale) {
        Some(series) => tables.extend(disturbances(&series)),
        None => notes.push("no longer run was made: the slow stamp cannot be made here".into()),
    }
    notes.push(format!("the slow stamp reads {FILE}; it is timed by {}, base subtracted", bases.best.kind()));
    notes.extend(bases.missing.iter().map(|missing| format!("not here: {missing}")));

    let builtin = middle(bases.of(Path::Builtin(bases.best.kind())), |figures| Some(figures.min));
    let quicker = middle(rounds, |figures| Some(figures.min)).zip(builtin);
    let quicker = quicker.map(|(slow, builtin)| slow / builtin.max(bases.best.step_ns()));
    let goal = Goal::of("a slow stamp over a builtin one, minima", "x", Bound::AtLeast(QUICKER_MIN), quicker);
    let runs = rounds.iter().enumerate().filter_map(|(round, series)| {
        let figures = figures(series)?;
        Some(json!({
            "cell": "BASE", "arm": "slow", "round": round,
            "metrics": { "mean_ns": figures.mean, "min_ns": figures.min, "max_ns": figures.max, "std_ns": figures.std },
        }))
    });
    Finding {
        drawings,
        tables,
        goals: vec![goal],
        runs: runs.collect(),
        ..Finding::new(
            "slow",
            "BASE with a stamp that is a system call and a text",
            "Figures 1 to 4",
            "Published: most stamps below 500 µs, a second set at about 1 ms in a regular pattern, a few irregular ones of \
            6 to 8 ms; one layer of outliers off, the lower set still ranges from 220 to 500 µs. Unfit for measuring.",
            notes,
        )
    }
}

fn figures_table(rounds: &[Series]) -> Table {
    let mut table = Table::new(
        "A slow stamp, 1000 a round",
        &[
            ("who", "who"),
            ("mean_ns", "mean|ns"),
            ("min_ns", "min|ns"),
            ("max_ns", "max|ns"),
            ("std_ns", "std|ns"),
            ("max_over_min", "max /|min"),
        ],
    );
    let [mean, min, max, std] = PUBLISHED_US.map(|us| us * 1e3);
    let published = [mean, min, max, std, max / min].map(Value::Number);
    table.rows.push([vec![Value::text("published (150 MHz, Inferno)")], published.into()].concat());
    let ours = [
        middle(rounds, |figures| Some(figures.mean)),
        middle(rounds, |figures| Some(figures.min)),
        middle(rounds, |figures| Some(figures.max)),
        middle(rounds, |figures| Some(figures.std)),
        middle(rounds, |figures| Some(figures.max / figures.min)),
    ];
    let words = format!("here, median of {} rounds", rounds.len());
    table.rows.push([vec![Value::text(words)], ours.map(Value::of).into()].concat());
    table
}

/// The layers of outliers, as `plot -o`, `-oo` … removes them.
fn layers_table(layers: &Layers) -> Table {
    let shown = &layers.bounds[..layers.count().min(LAYERS_SHOWN)];
    let mut table = table_by(
        "Layers of outliers (beyond mean ± 2 std), first round",
        &(0..).zip(shown).collect::<Vec<_>>(),
        &[
            ("layer", "layer", &|(place, _)| Value::text(format!("{}", place + 1))),
            ("taken", "taken", &|(_, bounds)| Value::Count(bounds.taken)),
            ("mean_ns", "mean|ns", &|(_, bounds)| Value::Number(bounds.mean)),
            ("std_ns", "std|ns", &|(_, bounds)| Value::Number(bounds.std)),
            ("beyond_ns", "beyond|ns", &|(_, bounds)| Value::Number(bounds.high)),
        ],
    );
    let (rest, kept) = (layers.count().saturating_sub(LAYERS_SHOWN), layers.kept().count());
    if rest > 0 {
        let taken: usize = layers.bounds[LAYERS_SHOWN..].iter().map(|bounds| bounds.taken).sum();
        let words = Value::text(format!("{rest} more"));
        let cells = [Value::Count(taken), Value::Nothing, Value::Nothing, Value::Nothing];
        table.rows.push([vec![words], cells.into()].concat());
    }
    let cells = [Value::Count(kept), Value::Nothing, Value::Nothing, Value::Nothing];
    table.rows.push([vec![Value::text("kept")], cells.into()].concat());
    table
}

/// A series of slow stamps that is long enough to find periods.
fn longer(clock: &Clock, scale: Scale) -> Option<Series> {
    let stamp = SlowStamp::open().ok()?;
    slow_stamps(&stamp, clock, scale.pick(600_000, 200_000, 500)).ok()
}

/// The causes of outliers in a longer run, and the periodic disturbances.
fn disturbances(series: &Series) -> Vec<Table> {
    let tick = series.machine.as_ref().and_then(|machine| machine.hz).map(Known::tick);
    let known: Vec<Known> = tick.into_iter().chain(Known::from_marks(&series.marks)).collect();
    let walls = series.walls();
    let spectrum = Spectrum::of_series(series, &known);
    let on_tick = spectrum.as_ref().map(Spectrum::on_tick).unwrap_or_default();
    let layers = Layers::peel_all(&walls);
    let attribution = Attribution::of(&series.observations, &series.marks, &layers, &on_tick);
    let causes = attribution.as_ref().map(|attribution| causes_table(attribution, walls.len()));
    causes.into_iter().chain(spectrum.as_ref().map(beats_table)).collect()
}

/// The causes of the outliers' lost time.
fn causes_table(attribution: &Attribution, stamps: usize) -> Table {
    let usual = Unit::Nanoseconds.scaled(attribution.usual_ns);
    let share = attribution.lost_share() * 100.0;
    let stamps = Unit::Count.scaled(stamps as f64);
    table_by(
        &format!(
            "What outliers lost time to, {stamps} slow stamps ({share:.1} % of their time; usual {usual})"
        ),
        &attribution.causes,
        &[
            ("cause", "cause", &|total| Value::text(total.cause.name())),
            ("outliers", "outliers", &|total| Value::Count(total.outliers)),
            ("lost_ns", "lost|ns", &|total| Value::Number(total.lost.ns())),
            ("share_percent", "of what|was lost, %", &|total| Value::Number(total.share * 100.0)),
        ],
    )
}

/// The periodic disturbances.
fn beats_table(spectrum: &Spectrum) -> Table {
    let span = Unit::Seconds.scaled(spectrum.span);
    let mut table = table_by(
        &format!("What comes back regularly in {span} of slow stamps (the source's clock: every 10 ms)"),
        &spectrum.periods,
        &[
            ("source", "whose", &|period| Value::text(period.whose().as_deref().unwrap_or("unknown"))),
            ("frequency_hz", "Hz", &|period| Value::Number(period.frequency)),
            ("period_ms", "every|ms", &|period| Value::Number(period.period * 1e3)),
            ("typical_ns", "costs|ns", &|period| Value::Number(period.typical)),
            ("share_percent", "of what|was lost, %", &|period| Value::Number(period.share * 100.0)),
        ],
    );
    if spectrum.periods.is_empty() {
        let nothing = [Value::Nothing, Value::Nothing, Value::Nothing, Value::Nothing];
        table.rows.push([vec![Value::text("nothing does")], nothing.into()].concat());
    }
    table
}

fn figures_1_to_4(series: &Series, attribution: Option<&Attribution>) -> Vec<(&'static str, Plot)> {
    let subject = || {
        let subject = Subject::new("slow stamp", series.walls());
        attribution.map_or(subject.clone(), |attribution| subject.explained(attribution))
    };
    let plot = |kind| Plot::new(kind, Series::TIME, Unit::Nanoseconds, vec![subject()]);
    drawn([
        ("bates-figure1", plot(Kind::Order).map(|p| p.title("Figure 1: BASE, slow stamp"))),
        (
            "bates-figure2",
            plot(Kind::Order).map(|p| p.layers(1).title("Figure 2: the same, a layer of outliers off")),
        ),
        ("bates-figure3", plot(Kind::Histogram).map(|p| p.title("Figure 3: where BASE lies, slow stamp"))),
        (
            "bates-figure4",
            plot(Kind::Histogram)
                .map(|p| p.layers(1).zero(true).title("Figure 4: the same, a layer of outliers off")),
        ),
    ])
}
