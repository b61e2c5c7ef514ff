//! The workloads that time a kernel's versions A and B with other tools, each with its default settings.

use super::{failed, figure, finish, json, kernel, percent, program, sizes, tool};
use crate::Metrics;
use crate::timing::tools::Tool;
use std::process::Command;
use vellum_campaign::worker::{Params, WorkError};

/// Runs google-benchmark's program once; `min_ms`, if given, is the least time of each measurement.
pub(crate) fn google(params: &Params) -> Result<Metrics, WorkError> {
    let mut command = Command::new(tool(params, Tool::Google));
    command.arg(kernel(params)?.name()).args(sizes(params)?.map(|size| size.to_string()));
    command.arg("--benchmark_format=json");
    if let Ok(least) = params.number("min_ms") {
        command.arg(format!("--benchmark_min_time={}", least as f64 / 1e3));
    }
    let (output, seconds) = finish(&mut command)?;
    let name = "google-benchmark";
    let value = json(name, &output.stdout)?;
    let both = |what: &str| -> Result<[f64; 2], WorkError> {
        let of = |place: usize| figure(name, &value, &format!("/benchmarks/{place}/{what}"));
        Ok([of(0)?, of(1)?])
    };
    Ok(apart(both("real_time")?, both("cpu_time")?, seconds))
}

/// Runs hyperfine once on both versions as whole processes; `runs`, if given, is the number of runs of each.
pub(crate) fn hyperfine(params: &Params) -> Result<Metrics, WorkError> {
    let calls = params.number("calls")? as u64;
    let scratch = tempfile::tempdir_in(params.word("tools")).map_err(failed("making a folder"))?;
    let result = scratch.path().join("hyperfine.json");
    let mut command = Command::new(tool(params, Tool::Hyperfine));
    command.args(["--style", "none", "--export-json"]).arg(&result);
    if !params.word("runs").is_empty() {
        command.args(["--runs", params.word("runs")]);
    }
    for size in sizes(params)? {
        // hyperfine passes commands to a shell, so paths with blanks need quotes.
        let words = program(params, size, calls)?;
        let words: Vec<String> = words.iter().map(|word| format!("'{}'", word.to_string_lossy())).collect();
        command.arg(words.join(" "));
    }
    let (_, seconds) = finish(&mut command)?;
    let value = json("hyperfine", &std::fs::read(&result).map_err(failed("reading hyperfine's result"))?)?;
    let ns = |place: usize, what: &str| {
        Ok::<f64, WorkError>(figure("hyperfine", &value, &format!("/results/{place}/{what}"))? * 1e9)
    };
    let cpu = |place| Ok::<f64, WorkError>(ns(place, "user")? + ns(place, "system")?);
    let mut metrics = apart([ns(0, "mean")?, ns(1, "mean")?], [cpu(0)?, cpu(1)?], seconds);
    metrics.set("median_effect_percent", percent(ns(1, "median")? / ns(0, "median")?));
    Ok(metrics)
}

/// The figures of a tool that times A and B separately: wall time and CPU time of both, in nanoseconds.
fn apart([a, b]: [f64; 2], [cpu_a, cpu_b]: [f64; 2], seconds: f64) -> Metrics {
    let mut metrics = Metrics::new();
    metrics.set("a_ns", a);
    metrics.set("b_ns", b);
    metrics.set("effect_percent", percent(b / a));
    metrics.set("cpu_a_ns", cpu_a);
    metrics.set("cpu_effect_percent", percent(cpu_b / cpu_a));
    metrics.set("seconds", seconds);
    metrics
}
