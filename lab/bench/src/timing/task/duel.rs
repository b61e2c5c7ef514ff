//! The tasks that time versions A and B of a kernel in one process, by turns in random order.

use super::{Given, Kernel, TaskError, percent};
use crate::Metrics;
use std::hint::black_box;
use std::time::{Duration, Instant};
use vellum_experiment::duel::{Bout, DuelOptions};
use vellum_measure::{Comparison, Direction, Options};

/// Runs one duel of A and B in `ms`.
pub(super) fn duel(given: &Given) -> Result<Metrics, TaskError> {
    let (kernel, a, b) = (given.kernel()?, given.number("a")?, given.number("b")?);
    let seed = given.seed()?;
    let began = Instant::now();
    let (found, seconds) = hold(kernel, [a, b], given.number("ms")?, seed)?;
    let mut metrics = figures(&found);
    metrics.set("a_ns", found.a.estimate);
    metrics.set("b_ns", found.b.estimate);
    metrics.set("seconds", seconds);
    metrics.set("answered_seconds", began.elapsed().as_secs_f64());
    metrics.set("seed", seed as f64);
    Ok(metrics)
}

/// Runs `times` duels of A with itself, each in `ms`, and counts the intervals that contain the truth.
pub(super) fn control(given: &Given) -> Result<Metrics, TaskError> {
    let (kernel, a, times) = (given.kernel()?, given.number("a")?, given.number("times")?);
    let seed = given.seed()?;
    let (mut covered, mut worst, mut rounds) = (0, 0.0, 0);
    for turn in 0..times {
        let (found, _) = hold(kernel, [a, a], given.number("ms")?, seed + turn)?;
        let control = found.headline.control;
        covered += u64::from(control.contains(1.0));
        worst = percent(control.estimate).abs().max(worst);
        rounds += found.rounds;
    }
    let mut metrics = Metrics::new();
    metrics.set("runs", times as f64);
    metrics.set("covered", covered as f64);
    metrics.set("control_worst_percent", worst);
    metrics.set("rounds", rounds as f64);
    metrics.set("seed", seed as f64);
    Ok(metrics)
}

/// Runs a duel in `ms`, which includes finding the clock and warming up. Also returns the actual seconds
/// until the end of the last round.
fn hold(kernel: Kernel, sizes: [u64; 2], ms: u64, seed: u64) -> Result<(Comparison, f64), TaskError> {
    let (began, time) = (Instant::now(), Duration::from_millis(ms));
    let [mut a, mut b] = sizes.map(|size| move || _ = black_box(kernel.run(black_box(size))));
    let options = DuelOptions { time, seed, ..DuelOptions::default() };
    let bout = Bout::open([&mut a, &mut b], &options)?;
    let duel = bout.measure(time.saturating_sub(began.elapsed()));
    let seconds = began.elapsed().as_secs_f64();
    Ok((duel.compare(&Options { low_share: kernel.low_share(), ..Options::default() })?, seconds))
}

pub(super) fn figures(found: &Comparison) -> Metrics {
    let (ratio, control) = (found.headline.ratio, found.headline.control);
    let mut metrics = Metrics::new();
    metrics.set("rounds", found.rounds as f64);
    metrics.set("effect_percent", percent(ratio.estimate));
    metrics.set("effect_low_percent", percent(ratio.low));
    metrics.set("effect_high_percent", percent(ratio.high));
    metrics.set("control_percent", percent(control.estimate));
    metrics.set("control_low_percent", percent(control.low));
    metrics.set("control_high_percent", percent(control.high));
    metrics.set("check_effect_percent", percent(found.check.ratio.estimate));
    metrics.set("check_control_percent", percent(found.check.control.estimate));
    metrics.set("shown", f64::from(u8::from(found.direction() == Direction::More)));
    metrics
}
