//! The task that times versions A and B as whole processes with hyperfine, with its default settings.

use super::{Given, TaskError, apart, figure, finish, json, percent, program};
use crate::Metrics;
use crate::timing::tools::Tool;
use std::process::Command;

const NAME: &str = "hyperfine";

/// Runs hyperfine once on both commands; `runs`, if given, is the number of runs of each.
pub(super) fn hyperfine(given: &Given) -> Result<Metrics, TaskError> {
    let calls = given.number("calls")?;
    let folder = given.folder()?;
    let scratch = tempfile::tempdir_in(&folder).map_err(|source| TaskError::System {
        operation: "making a folder for hyperfine's result",
        source,
    })?;
    let result = scratch.path().join("hyperfine.json");
    let mut command = Command::new(given.tool(Tool::Hyperfine)?);
    command.args(["--style", "none", "--export-json"]).arg(&result);
    if let Ok(runs) = given.text("runs") {
        command.args(["--runs", runs]);
    }
    for size in [given.number("a")?, given.number("b")?] {
        // hyperfine passes commands to a shell, so paths with blanks need quotes.
        let words = program(given, size, calls)?;
        let words: Vec<String> = words.iter().map(|word| format!("'{}'", word.to_string_lossy())).collect();
        command.arg(words.join(" "));
    }
    let (_, seconds) = finish(&mut command)?;
    let bytes = std::fs::read(&result)
        .map_err(|source| TaskError::System { operation: "reading hyperfine's result", source })?;
    let value = json(NAME, &bytes)?;
    let of = |place: usize, what: &str| figure(NAME, &value, &format!("/results/{place}/{what}"));
    let cpu = |place| Ok::<f64, TaskError>(of(place, "user")? + of(place, "system")?);
    let mut metrics = apart(of(0, "mean")? * 1e9, of(1, "mean")? * 1e9, seconds);
    metrics.set("cpu_a_ns", cpu(0)? * 1e9);
    metrics.set("cpu_effect_percent", percent(cpu(1)? / cpu(0)?));
    metrics.set("median_effect_percent", percent(of(1, "median")? / of(0, "median")?));
    Ok(metrics)
}
