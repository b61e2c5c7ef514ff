//! The tasks of section `timing`: the work of one process of the campaign.
//!
//! Every repeat is its own process with its own random addresses, like the repeated runs of a user. A task
//! is a function from words (`name=value`) to figures, like a workload, but its values may be texts.

mod base;
mod cost;
mod duel;
mod google;
mod hyperfine;
mod instructions;
mod planted;
mod process;

use super::kernel::Kernel;
use super::tools::Tool;
use crate::Metrics;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Instant;
use vellum_campaign::worker::{Params, WorkError};
use vellum_experiment::process_duel::ProcessDuelError;
use vellum_measure::CompareError;
use vellum_timing::bench::BenchError;
use vellum_timing::clock::ClockError;
use vellum_timing::record::RecordError;

/// The ratio of B's work to A's.
pub(super) const TRUE_RATIO: f64 = 1.01;

/// Why a task has no figures.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// There is no such task, or a word is missing or invalid.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// A duel failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// There is no usable clock.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A recorder could not be made.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A duel of processes failed.
    #[error(transparent)]
    Process(#[from] ProcessDuelError),
    /// A comparison failed.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A tool could not be run, or failed.
    #[error("{tool}: {why}")]
    Tool {
        /// The tool's name.
        tool: String,
        /// The reason.
        why: String,
    },
    /// A system call failed.
    #[error("{operation}: {source}")]
    System {
        /// The operation.
        operation: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

/// One task.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// The tools it needs beside this program.
    pub needs: &'static [Tool],
    /// Words for a run that takes almost no time, without the folder of tools.
    pub tiny: &'static [&'static str],
    run: fn(&Given) -> Result<Metrics, TaskError>,
}

/// All tasks.
pub const TASKS: [Task; 11] = [
    Task { name: "duel", needs: &[], tiny: &["kernel=alloc", "a=400", "b=404", "ms=15"], run: duel::duel },
    Task {
        name: "control",
        needs: &[],
        tiny: &["kernel=cpu", "a=1000", "ms=10", "times=2"],
        run: duel::control,
    },
    Task { name: "base", needs: &[], tiny: &["clock=monotonic", "n=50"], run: base::base },
    Task {
        name: "planted",
        needs: &[],
        tiny: &["kernel=cpu", "a=1000", "hz=97", "plant_us=20", "ms=20"],
        run: planted::planted,
    },
    Task {
        name: "undisturbed",
        needs: &[],
        tiny: &["kernel=cpu", "a=1000", "plant_us=20", "ms=20"],
        run: planted::undisturbed,
    },
    Task {
        name: "process",
        needs: &[Tool::Program],
        tiny: &["kernel=cpu", "a=100", "b=101", "calls=2", "ms=20"],
        run: process::process,
    },
    Task {
        name: "instructions",
        needs: &[Tool::Program, Tool::Valgrind],
        tiny: &["kernel=cpu", "a=1000", "b=1010"],
        run: instructions::instructions,
    },
    Task {
        name: "hyperfine",
        needs: &[Tool::Program, Tool::Hyperfine],
        tiny: &["kernel=cpu", "a=100", "b=101", "calls=2", "runs=2"],
        run: hyperfine::hyperfine,
    },
    Task {
        name: "google",
        needs: &[Tool::Google],
        tiny: &["kernel=cpu", "a=1000", "b=1010", "min_ms=1"],
        run: google::google,
    },
    Task {
        name: "cost",
        needs: &[Tool::Program, Tool::Vellum],
        tiny: &["kernel=alloc", "a=400", "calls=3"],
        run: cost::cost,
    },
    Task {
        name: "family",
        needs: &[Tool::Family, Tool::Vellum],
        tiny: &["threads=2", "forks=2", "pairs=100"],
        run: cost::family,
    },
];

pub(super) fn find(name: &str) -> Option<Task> {
    TASKS.into_iter().find(|task| task.name == name)
}

/// Runs the task with this name and returns its figures as one line.
///
/// # Errors
/// [`TaskError`] if there is no such task, or it fails.
pub fn run<S: AsRef<str>>(name: &str, words: &[S]) -> Result<String, TaskError> {
    let task = find(name).ok_or_else(|| WorkError::Unknown(name.to_owned()))?;
    let metrics = (task.run)(&Given(Params::parse(words)?))?;
    Ok(serde_json::to_string(&metrics).expect("a map of finite numbers is JSON"))
}

#[derive(Debug)]
struct Given(Params);

impl Given {
    fn text(&self, name: &'static str) -> Result<&str, TaskError> {
        let text = self.0.word(name);
        if text.is_empty() { Err(self.0.refused(name).into()) } else { Ok(text) }
    }

    fn number(&self, name: &'static str) -> Result<u64, TaskError> {
        Ok(self.0.number(name)? as u64)
    }

    fn kernel(&self) -> Result<Kernel, TaskError> {
        Ok(self.text("kernel")?.parse().map_err(|()| self.0.refused("kernel"))?)
    }

    fn folder(&self) -> Result<PathBuf, TaskError> {
        self.text("tools").map(PathBuf::from)
    }

    fn tool(&self, tool: Tool) -> Result<PathBuf, TaskError> {
        Ok(self.folder()?.join(tool.file()))
    }

    /// The given seed, or a random one, so that repeats have different orders. The seed is reported with
    /// the figures.
    fn seed(&self) -> Result<u64, TaskError> {
        if !self.0.word("seed").is_empty() {
            return self.number("seed");
        }
        // 32 bits, which are exact as a floating-point figure.
        Ok(RandomState::new().build_hasher().finish() >> 32)
    }
}

/// Runs a tool to its end and returns its output, and its time in seconds.
fn finish(command: &mut Command) -> Result<(Output, f64), TaskError> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let fail = |why: String| TaskError::Tool { tool: tool.clone(), why };
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().map_err(|error| fail(error.to_string()))?;
    let seconds = began.elapsed().as_secs_f64();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(fail(format!("{}: {}", output.status, errors.lines().last().unwrap_or_default())));
    }
    Ok((output, seconds))
}

fn json(tool: &str, bytes: &[u8]) -> Result<serde_json::Value, TaskError> {
    serde_json::from_slice(bytes).map_err(|error| TaskError::Tool {
        tool: tool.to_owned(),
        why: format!("what it wrote is no JSON: {error}"),
    })
}

/// A number in a tool's JSON output, by JSON pointer.
fn figure(tool: &str, value: &serde_json::Value, pointer: &str) -> Result<f64, TaskError> {
    let found = value.pointer(pointer).and_then(serde_json::Value::as_f64);
    found.ok_or_else(|| TaskError::Tool {
        tool: tool.to_owned(),
        why: format!("it wrote no number at {pointer}"),
    })
}

/// The figures of a tool that times A and B separately.
fn apart(a_ns: f64, b_ns: f64, seconds: f64) -> Metrics {
    let mut metrics = Metrics::new();
    metrics.set("a_ns", a_ns);
    metrics.set("b_ns", b_ns);
    metrics.set("effect_percent", percent(b_ns / a_ns));
    metrics.set("seconds", seconds);
    metrics
}

/// The excess of a ratio over 1, in percent.
fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// `program KERNEL SIZE CALLS`.
fn program(given: &Given, size: u64, calls: u64) -> Result<Vec<OsString>, TaskError> {
    let kernel = given.kernel()?;
    let program = given.tool(Tool::Program)?.into_os_string();
    Ok(vec![program, kernel.name().into(), size.to_string().into(), calls.to_string().into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parsed_and_mistakes_reported() {
        let given = |words: &[&str]| Given(Params::parse(words).unwrap());
        let sound = given(&["kernel=cpu", "a=7", "tools=/x=y"]);
        assert_eq!((sound.kernel().unwrap(), sound.number("a").unwrap()), (Kernel::Cpu, 7));
        assert_eq!(sound.tool(Tool::Google).unwrap(), PathBuf::from("/x=y/google"));
        assert!(sound.number("b").is_err() && given(&["kernel=disk"]).kernel().is_err());
        assert!(matches!(run::<&str>("nonesuch", &[]), Err(TaskError::Work(WorkError::Unknown(_)))));
        assert_ne!(sound.seed().unwrap(), sound.seed().unwrap());
        assert_eq!(given(&["seed=5"]).seed().unwrap(), 5);
    }

    #[test]
    fn tasks_without_tools_run_in_a_tiny_size() {
        for task in TASKS.iter().filter(|task| task.needs.is_empty()) {
            let line = run(task.name, task.tiny).unwrap_or_else(|error| panic!("{}: {error}", task.name));
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert!(value.as_object().is_some_and(|figures| !figures.is_empty()), "{}: {line}", task.name);
        }
    }
}
