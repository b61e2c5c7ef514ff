//! The task that times versions A and B with google-benchmark, with its default settings.

use super::{Given, TaskError, apart, figure, finish, json, percent};
use crate::Metrics;
use crate::timing::tools::Tool;
use std::process::Command;

const NAME: &str = "google-benchmark";

/// Runs its program once; `min_ms`, if given, is the least time of each measurement.
pub(super) fn google(given: &Given) -> Result<Metrics, TaskError> {
    let mut command = Command::new(given.tool(Tool::Google)?);
    command.args([given.kernel()?.name(), given.text("a")?, given.text("b")?, "--benchmark_format=json"]);
    if let Ok(least) = given.number("min_ms") {
        command.arg(format!("--benchmark_min_time={}", least as f64 / 1e3));
    }
    let (output, seconds) = finish(&mut command)?;
    let value = json(NAME, &output.stdout)?;
    let of = |place: usize, what: &str| figure(NAME, &value, &format!("/benchmarks/{place}/{what}"));
    let mut metrics = apart(of(0, "real_time")?, of(1, "real_time")?, seconds);
    metrics.set("cpu_a_ns", of(0, "cpu_time")?);
    metrics.set("cpu_effect_percent", percent(of(1, "cpu_time")? / of(0, "cpu_time")?));
    Ok(metrics)
}
