//! What a framework of benchmarks is asked, and what it answers: one implementation for each, in a file of
//! its own.
//!
//! An adapter only says how a suite is called and reads what the suite wrote; it starts nothing. All that a
//! suite writes lies in one folder, which is empty before each call, so nothing of the user's is touched.

use super::call::Call;
use super::{criterion, google, pytest};
use std::fmt;
use std::path::Path;

/// One sample of a benchmark: nanoseconds an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Elapsed.
    pub wall_ns: f64,
    /// On a processor, where the framework says so.
    pub cpu_ns: Option<f64>,
}

impl Sample {
    /// One, if both are times.
    pub(super) fn new(wall_ns: f64, cpu_ns: Option<f64>) -> Result<Sample, String> {
        let is_time = |ns: f64| ns.is_finite() && ns > 0.0;
        if is_time(wall_ns) && cpu_ns.is_none_or(is_time) {
            Ok(Sample { wall_ns, cpu_ns })
        } else {
            Err(format!("a sample of {wall_ns} ns is no time; does the benchmark do anything?"))
        }
    }
}

/// How a framework is spoken to.
pub(super) trait Adapter: Sync {
    /// How its benchmarks are listed, into the folder.
    fn list(&self, words: &[String], folder: &Path) -> Call;

    /// Those that it listed.
    fn names(&self, folder: &Path) -> Result<Vec<String>, String>;

    /// How this benchmark alone is run, once and shortly.
    fn run(&self, words: &[String], benchmark: &str, folder: &Path) -> Call;

    /// What that run measured.
    fn samples(&self, folder: &Path) -> Result<Vec<Sample>, String>;

    /// What a suite must be that none of this works with.
    fn needs(&self) -> &'static str;
}

/// A framework of benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// `criterion`, of Rust.
    Criterion,
    /// `google-benchmark`, of C++.
    Google,
    /// `pytest-benchmark`, of Python.
    Pytest,
}

impl Framework {
    /// Whether it gives CPU time beside elapsed time.
    #[must_use]
    pub fn gives_cpu(self) -> bool {
        self == Framework::Google
    }

    pub(super) fn adapter(self) -> &'static dyn Adapter {
        match self {
            Framework::Criterion => &criterion::Criterion,
            Framework::Google => &google::Google,
            Framework::Pytest => &pytest::Pytest,
        }
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Framework::Criterion => "criterion",
            Framework::Google => "google-benchmark",
            Framework::Pytest => "pytest-benchmark",
        })
    }
}

/// These options, each `--name=value`, without those that the command has itself: its own are kept.
pub(super) fn unless_given(words: &[String], options: &[&str]) -> Vec<String> {
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    let given: Vec<String> = words.iter().map(|word| name(word)).collect();
    options
        .iter()
        .filter(|option| !given.contains(&name(option)))
        .map(|option| (*option).to_owned())
        .collect()
}

/// A file of the folder as text.
pub(super) fn text(folder: &Path, name: &str) -> Result<String, String> {
    let read = std::fs::read(folder.join(name));
    read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|error| format!("it left no {name}: {error}"))
}

/// A document that a suite wrote.
pub(super) fn json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| format!("its results are no JSON: {error}"))
}

/// The names, each once, in their order.
pub(super) fn once(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    kept.extend(names.filter(|name| seen.insert(name.clone())));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_command_are_kept() {
        let words = ["./bench", "--sample-size", "50", "--noplot"].map(str::to_owned);
        let ours = ["--sample-size=10", "--measurement-time=0.1", "--noplot"];
        assert_eq!(unless_given(&words, &ours), ["--measurement-time=0.1"]);
    }

    #[test]
    fn only_times_are_samples() {
        assert!(Sample::new(1.0, Some(2.0)).is_ok() && Sample::new(0.5, None).is_ok());
        for (wall, cpu) in [(0.0, None), (f64::NAN, None), (-1.0, None), (1.0, Some(f64::INFINITY))] {
            assert!(Sample::new(wall, cpu).is_err(), "{wall} {cpu:?}");
        }
    }
}
