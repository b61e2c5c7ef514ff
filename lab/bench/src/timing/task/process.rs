//! The task that times versions A and B as whole processes with Vellum's own code, by turns in random order.

use super::duel::figures;
use super::{Given, TaskError, percent, program};
use crate::Metrics;
use std::time::{Duration, Instant};
use vellum_experiment::process_duel::{ProcessMetric, ProcessOptions, process_duel_while};
use vellum_measure::Options;
use vellum_process::Command;

/// Runs one duel of processes in `ms`, including empty runs and the warm-up.
pub(super) fn process(given: &Given) -> Result<Metrics, TaskError> {
    let (began, time) = (Instant::now(), Duration::from_millis(given.number("ms")?));
    let (calls, seed) = (given.number("calls")?, given.seed()?);
    let command = |size| -> Result<Command, TaskError> {
        let argv = program(given, size, calls)?;
        Ok(Command {
            program: argv[0].clone().into(),
            argv,
            env: std::env::vars_os().collect(),
            stdio: [None, None, None],
        })
    };
    let (a, b) = (command(given.number("a")?)?, command(given.number("b")?)?);
    let options = ProcessOptions { time, seed, ..ProcessOptions::default() };
    let duel = process_duel_while(&[&a, &b], &options, |rounds| {
        rounds < options.rounds_min || began.elapsed() < time
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let found = duel.compare(ProcessMetric::Cpu, 2, &Options::default())?;
    let wall = duel.compare(ProcessMetric::Wall, 2, &Options::default())?;
    let mut metrics = figures(&found);
    metrics.set("a_ns", found.a.estimate);
    metrics.set("b_ns", found.b.estimate);
    metrics.set("wall_effect_percent", percent(wall.headline.ratio.estimate));
    metrics.set("wall_control_percent", percent(wall.headline.control.estimate));
    metrics.set("seconds", seconds);
    metrics.set("answered_seconds", began.elapsed().as_secs_f64());
    metrics.set("seed", seed as f64);
    Ok(metrics)
}
