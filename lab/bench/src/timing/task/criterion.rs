//! A and B under criterion.

use super::{Given, TaskError, apart, figure, finish, json};
use crate::Metrics;
use crate::timing::tools::Tool;
use std::path::Path;
use std::process::Command;

const NAME: &str = "criterion";

/// Runs its program once: each version is warmed up for `warm_up_ms` and measured for `measure_ms`.
pub(super) fn criterion(given: &Given) -> Result<Metrics, TaskError> {
    let folder = given.folder()?;
    let scratch = tempfile::tempdir_in(&folder).map_err(|source| TaskError::System {
        operation: "making a folder for criterion's result",
        source,
    })?;
    let result = scratch.path().join("criterion");
    let mut command = Command::new(given.tool(Tool::Criterion)?);
    command.args([given.kernel()?.name(), given.text("a")?, given.text("b")?]).arg(&result);
    let (_, seconds) = finish(command.args([given.text("warm_up_ms")?, given.text("measure_ms")?]))?;
    let (a, b) = (headline(&result, "A")?, headline(&result, "B")?);
    Ok(apart(a, b, seconds))
}

/// The estimate that criterion prints: the slope, or the mean if it could not vary the batch.
fn headline(folder: &Path, name: &str) -> Result<f64, TaskError> {
    let bytes = std::fs::read(folder.join(name).join("new/estimates.json"))
        .map_err(|source| TaskError::System { operation: "reading criterion's result", source })?;
    let value = json(NAME, &bytes)?;
    let of = |what: &str| figure(NAME, &value, &format!("/{what}/point_estimate"));
    of("slope").or_else(|_| of("mean"))
}
