//! The task that counts the kernels' instructions, to verify that they do the expected work.
//!
//! The CPU-bound kernel is a chain of steps. If a compiler removed steps, a turn of the chain would have
//! fewer instructions than steps. A wrong version B would not have 1 % more instructions.

use super::{Given, TaskError, finish, percent, program};
use crate::Metrics;
use crate::timing::tools::Tool;
use std::process::Command;

/// The word before the number in callgrind's summary.
const COLLECTED: &str = "Collected :";

/// Counts the instructions of one call of A and of B.
pub(super) fn instructions(given: &Given) -> Result<Metrics, TaskError> {
    let (a, b) = (given.number("a")?, given.number("b")?);
    let (in_a, in_b) = (count(given, a)?, count(given, b)?);
    let mut metrics = Metrics::new();
    metrics.set("instructions_a", in_a);
    metrics.set("instructions_b", in_b);
    metrics.set("instructions_each", in_a / a as f64);
    metrics.set("instructions_effect_percent", percent(in_b / in_a));
    Ok(metrics)
}

fn count(given: &Given, size: u64) -> Result<f64, TaskError> {
    let mut command = Command::new(given.tool(Tool::Valgrind)?);
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(format!("--toggle-collect={}", given.kernel()?.symbol())).args(program(given, size, 1)?);
    let (output, _) = finish(&mut command)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let number = errors.lines().find_map(|line| line.split_once(COLLECTED)?.1.trim().parse().ok());
    number.ok_or_else(|| TaskError::Tool {
        tool: "callgrind".to_owned(),
        why: format!("it printed no {COLLECTED:?}"),
    })
}
