//! The task that measures BASE, the time of an empty operation, with one clock.

use super::{Given, TaskError};
use crate::Metrics;
use vellum_measure::Sample;
use vellum_timing::clock::{Clock, ClockKind, measure_base_on};

/// `n` empty timings by `clock`.
pub(super) fn base(given: &Given) -> Result<Metrics, TaskError> {
    let kind: ClockKind = given.text("clock")?.parse()?;
    let series = measure_base_on(&Clock::open(kind)?, given.number("n")? as usize)?;
    let walls: Sample = series.observations.iter().map(|one| one.wall_ns).collect();
    let mut metrics = Metrics::new();
    if let Some(base) = &series.base {
        metrics.set("base_ns", base.min);
        metrics.set("mean_ns", base.mean);
        metrics.set("max_ns", base.max);
        metrics.set("std_ns", base.std);
        metrics.set("step_ns", base.step);
        metrics.set("at_mode_percent", base.mode_share(&walls, 1).unwrap_or(f64::NAN) * 100.0);
    }
    Ok(metrics)
}
