//! The workloads of section `timing`: each times the kernels with one tool.
//!
//! Every repeat is its own process with its own random addresses, like the repeated runs of a user.

mod cost;
mod duel;
mod peers;

pub(crate) use cost::cost;
pub(crate) use duel::{control, duel, process};
pub(crate) use peers::{google, hyperfine};

use super::kernel::Kernel;
use super::tools::Tool;
use std::ffi::OsString;
use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Instant;
use vellum_campaign::worker::{Params, WorkError};

fn kernel(params: &Params) -> Result<Kernel, WorkError> {
    let name = params.word("kernel");
    Kernel::ALL.into_iter().find(|kernel| kernel.name() == name).ok_or_else(|| params.refused("kernel"))
}

/// The work of A and of B.
fn sizes(params: &Params) -> Result<[u64; 2], WorkError> {
    Ok([params.number("a")? as u64, params.number("b")? as u64])
}

fn tool(params: &Params, tool: Tool) -> PathBuf {
    PathBuf::from(params.word("tools")).join(tool.file())
}

/// The given seed, or a random one, so that repeats have different orders. The seed is reported with the
/// figures.
fn seed(params: &Params) -> u64 {
    // 32 bits, which are exact as a floating-point figure.
    params.get("seed", RandomState::new().build_hasher().finish() >> 32)
}

fn failed<E: Display>(what: impl Into<String>) -> impl FnOnce(E) -> WorkError {
    |why| WorkError::Failed { what: what.into(), why: why.to_string() }
}

/// Runs a tool to its end and returns its output, and its time in seconds.
fn finish(command: &mut Command) -> Result<(Output, f64), WorkError> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().map_err(failed(&tool))?;
    let seconds = began.elapsed().as_secs_f64();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let why = format!("{}: {}", output.status, errors.lines().last().unwrap_or_default());
        return Err(WorkError::Failed { what: tool, why });
    }
    Ok((output, seconds))
}

fn json(tool: &str, bytes: &[u8]) -> Result<serde_json::Value, WorkError> {
    serde_json::from_slice(bytes).map_err(failed(format!("{tool}: its output is no JSON")))
}

/// A number in a tool's JSON output, by JSON pointer.
fn figure(tool: &str, value: &serde_json::Value, pointer: &str) -> Result<f64, WorkError> {
    let found = value.pointer(pointer).and_then(serde_json::Value::as_f64);
    found.ok_or_else(|| failed(tool)(format!("it wrote no number at {pointer}")))
}

/// The excess of a ratio over 1, in percent.
fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// `program KERNEL SIZE CALLS`.
fn program(params: &Params, size: u64, calls: u64) -> Result<Vec<OsString>, WorkError> {
    let program = tool(params, Tool::Program).into_os_string();
    Ok(vec![program, kernel(params)?.name().into(), size.to_string().into(), calls.to_string().into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parsed_and_mistakes_reported() {
        let given = |words: &[&str]| Params::parse(words).unwrap();
        let sound = given(&["kernel=cpu", "a=7", "tools=/x=y"]);
        assert_eq!(kernel(&sound).unwrap(), Kernel::Cpu);
        assert_eq!(tool(&sound, Tool::Google), PathBuf::from("/x=y/google"));
        assert!(sizes(&sound).is_err() && kernel(&given(&["kernel=disk"])).is_err());
        assert_ne!(seed(&sound), seed(&sound));
        assert_eq!(seed(&given(&["seed=5"])), 5);
    }
}
