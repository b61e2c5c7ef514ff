//! The workloads that time versions A and B of a kernel (B does 1 % more) with Vellum's own code. A and B
//! take turns in random order, in one process or as whole processes.

use super::{Kernel, failed, kernel, percent, program, seed, sizes};
use crate::Metrics;
use std::hint::black_box;
use std::time::{Duration, Instant};
use vellum_campaign::worker::{Params, WorkError};
use vellum_experiment::duel::{Bout, DuelOptions};
use vellum_experiment::process_duel::{ProcessMetric, ProcessOptions, process_duel_while};
use vellum_measure::{Comparison, Direction, Options};
use vellum_process::Command;

/// Runs one duel of A and B in `ms`.
pub(crate) fn duel(params: &Params) -> Result<Metrics, WorkError> {
    let (began, seed) = (Instant::now(), seed(params));
    let (found, seconds) = hold(kernel(params)?, sizes(params)?, time(params)?, seed)?;
    Ok(figures(&found, seconds, began, seed))
}

/// Runs `times` duels of A with itself, each in `ms`, and counts the intervals that contain the truth.
pub(crate) fn control(params: &Params) -> Result<Metrics, WorkError> {
    let (kernel, a, times) = (kernel(params)?, params.number("a")? as u64, params.number("times")? as u64);
    let seed = seed(params);
    let (mut covered, mut worst, mut rounds) = (0, 0.0, 0);
    for turn in 0..times {
        let (found, _) = hold(kernel, [a, a], time(params)?, seed + turn)?;
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

/// Runs one duel of whole processes in `ms`, including empty runs and the warm-up.
pub(crate) fn process(params: &Params) -> Result<Metrics, WorkError> {
    let (began, time, seed) = (Instant::now(), time(params)?, seed(params));
    let calls = params.number("calls")? as u64;
    let command = |size| -> Result<Command, WorkError> {
        let argv = program(params, size, calls)?;
        let (program, env) = (argv[0].clone().into(), std::env::vars_os().collect());
        Ok(Command { program, argv, env, stdio: [None, None, None] })
    };
    let [a, b] = sizes(params)?.map(command);
    let options = ProcessOptions { time, seed, ..ProcessOptions::default() };
    let duel = process_duel_while(&[&a?, &b?], &options, |rounds| {
        rounds < options.rounds_min || began.elapsed() < time
    });
    let duel = duel.map_err(failed("a duel of processes"))?;
    let seconds = began.elapsed().as_secs_f64();
    let compare = |metric| duel.compare(metric, 2, &Options::default()).map_err(failed("comparing"));
    let (found, wall) = (compare(ProcessMetric::Cpu)?, compare(ProcessMetric::Wall)?);
    let mut metrics = figures(&found, seconds, began, seed);
    metrics.set("wall_effect_percent", percent(wall.headline.ratio.estimate));
    metrics.set("wall_control_percent", percent(wall.headline.control.estimate));
    Ok(metrics)
}

fn time(params: &Params) -> Result<Duration, WorkError> {
    Ok(Duration::from_millis(params.number("ms")? as u64))
}

/// Runs a duel in `time`, which includes finding the clock and warming up. Also returns the actual seconds
/// until the end of the last round.
fn hold(kernel: Kernel, sizes: [u64; 2], time: Duration, seed: u64) -> Result<(Comparison, f64), WorkError> {
    let began = Instant::now();
    let [mut a, mut b] = sizes.map(|size| move || _ = black_box(kernel.run(black_box(size))));
    let options = DuelOptions { time, seed, ..DuelOptions::default() };
    let bout = Bout::open([&mut a, &mut b], &options).map_err(failed("a duel"))?;
    let duel = bout.measure(time.saturating_sub(began.elapsed()));
    let seconds = began.elapsed().as_secs_f64();
    let options = Options { low_share: kernel.low_share(), ..Options::default() };
    Ok((duel.compare(&options).map_err(failed("comparing"))?, seconds))
}

fn figures(found: &Comparison, seconds: f64, began: Instant, seed: u64) -> Metrics {
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
    metrics.set("a_ns", found.a.estimate);
    metrics.set("b_ns", found.b.estimate);
    metrics.set("seconds", seconds);
    metrics.set("answered_seconds", began.elapsed().as_secs_f64());
    metrics.set("seed", seed as f64);
    metrics
}
