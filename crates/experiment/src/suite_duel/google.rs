//! `google-benchmark`, of C++.
//!
//! ```text
//! EXE --benchmark_list_tests=true                        a name a line
//! EXE --benchmark_filter=^NAME$ --benchmark_out=FILE …   {"benchmarks": [
//!                                                          {"run_type": "iteration", "real_time": 1.2,
//!                                                           "cpu_time": 1.1, "time_unit": "ns"}, …]}
//! ```
//!
//! The filter is a regular expression, by `std::regex` or the system's, whichever the library was built
//! with. `std::regex` refuses a backslash before some characters, so most special characters stand between
//! brackets. Repetitions are the samples. A benchmark that skips itself with an error says so in its entry,
//! and the program exits with 0.

use super::adapter::{Adapter, Sample, json, once, text, unless_given};
use super::call::{Call, OUT};
use std::path::Path;

/// A short run. A plain number of seconds is read by all versions.
const SHORT: [&str; 2] = ["--benchmark_min_time=0.01", "--benchmark_repetitions=5"];
/// The file of results.
const FILE: &str = "google.json";
/// Characters that mean themselves between brackets, and something else outside.
const BRACKETED: &str = ".[*+?(){|$";
/// Those that a backslash makes ordinary in every kind of expression.
const ESCAPED: &str = r"\^";

pub(super) struct Google;

impl Adapter for Google {
    fn list(&self, _words: &[String], _folder: &Path) -> Call {
        Call::of(["--benchmark_list_tests=true".to_owned()])
    }

    fn names(&self, folder: &Path) -> Result<Vec<String>, String> {
        Ok(names(&text(folder, OUT)?))
    }

    fn run(&self, words: &[String], benchmark: &str, folder: &Path) -> Call {
        let out = format!("--benchmark_out={}", folder.join(FILE).display());
        let only = format!("--benchmark_filter=^{}$", literal(benchmark));
        let rest = [out, "--benchmark_out_format=json".to_owned(), only];
        Call::of(unless_given(words, &SHORT).into_iter().chain(rest))
    }

    fn samples(&self, folder: &Path) -> Result<Vec<Sample>, String> {
        samples(&text(folder, FILE)?)
    }

    fn needs(&self) -> &'static str {
        "is it a program of google-benchmark, with its main function or benchmark::Initialize?"
    }
}

/// The expression that matches this text alone.
fn literal(name: &str) -> String {
    let plain = |letter: char| match letter {
        _ if BRACKETED.contains(letter) => format!("[{letter}]"),
        _ if ESCAPED.contains(letter) => format!("\\{letter}"),
        _ => letter.to_string(),
    };
    name.chars().map(plain).collect()
}

/// The benchmarks of a list.
pub(super) fn names(text: &str) -> Vec<String> {
    once(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned))
}

/// The repetitions of the one benchmark.
pub(super) fn samples(text: &str) -> Result<Vec<Sample>, String> {
    let document = json(text)?;
    let entries = document["benchmarks"].as_array().cloned().unwrap_or_default();
    let mut samples = Vec::new();
    for entry in &entries {
        if entry["error_occurred"].as_bool() == Some(true) {
            return Err(entry["error_message"].as_str().unwrap_or("an error without a message").to_owned());
        }
        // Old versions have no kinds, and means and deviations have names of their own.
        if entry["run_type"].as_str().unwrap_or("iteration") != "iteration" {
            continue;
        }
        let unit = match entry["time_unit"].as_str() {
            Some("ns") => 1.0,
            Some("us") => 1e3,
            Some("ms") => 1e6,
            Some("s") => 1e9,
            other => return Err(format!("its times are in {}", other.unwrap_or("no unit"))),
        };
        let time = |field: &str| entry[field].as_f64().map_or(f64::NAN, |time| time * unit);
        samples.push(Sample::new(time("real_time"), Some(time("cpu_time")))?);
    }
    if samples.is_empty() { Err("its results have no run of the benchmark".to_owned()) } else { Ok(samples) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_means_one_name() {
        assert_eq!(literal("BM_Copy<int>/8/real_time"), "BM_Copy<int>/8/real_time");
        assert_eq!(literal(r"a.b[0](x)|{y}*+?^$\"), r"a[.]b[[]0][(]x[)][|][{]y}[*][+][?]\^[$]\\");
    }

    #[test]
    fn repetitions_are_samples_and_means_are_not() {
        let kept = r#"{"context": {"library_build_type": "release"}, "benchmarks": [
            {"name": "BM_Sum/8", "run_type": "iteration", "real_time": 1.5, "cpu_time": 1.25, "time_unit": "us"},
            {"name": "BM_Sum/8_mean", "run_type": "aggregate", "real_time": 9, "cpu_time": 9, "time_unit": "us"}]}"#;
        assert_eq!(samples(kept).unwrap(), [Sample { wall_ns: 1500.0, cpu_ns: Some(1250.0) }]);
        let skipped =
            r#"{"benchmarks": [{"name": "b", "error_occurred": true, "error_message": "no file"}]}"#;
        assert_eq!(samples(skipped).unwrap_err(), "no file");
        for wrong in ["{}", "x", r#"{"benchmarks": [{"real_time": 1, "cpu_time": 1, "time_unit": "h"}]}"#] {
            assert!(samples(wrong).is_err(), "{wrong}");
        }
    }
}
