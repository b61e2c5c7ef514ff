//! `pytest-benchmark`, of Python.
//!
//! ```text
//! CMD --collect-only                     names.json, by a plugin of ours: the tests that use its fixture
//! CMD --benchmark-json=FILE …            {"benchmarks": [{"fullname": …, "stats": {"data": [seconds, …]}}]}
//! ```
//!
//! pytest has no filter that names one test among those of a command line: names on it are added to the
//! others, and `-k` cannot say every name. So a plugin of a few lines leaves the one. Options go by
//! `PYTEST_ADDOPTS`: they stand before those of the command, which so prevail, and reach pytest through
//! `tox`, `poetry run` or a script.

use super::adapter::{Adapter, Sample, json, once, text};
use super::call::Call;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

/// A short run.
const SHORT: &str = "--benchmark-only --benchmark-max-time=0.1 --benchmark-min-rounds=5";
/// The plugin, and its module's name.
const PLUGIN: &str = include_str!("listing.py");
const MODULE: &str = "vellum_listing";
/// The files of names and of results.
const NAMES: &str = "names.json";
const FILE: &str = "pytest.json";
/// pytest's status where no test was chosen.
pub(super) const NO_TESTS: u8 = 5;
/// A second, which Python's times are in.
const SECOND_NS: f64 = 1e9;

pub(super) struct Pytest;

impl Adapter for Pytest {
    fn list(&self, _words: &[String], folder: &Path) -> Call {
        call("--collect-only --quiet --benchmark-only", folder)
            .with_env("VELLUM_BENCHMARKS", folder.join(NAMES))
    }

    fn names(&self, folder: &Path) -> Result<Vec<String>, String> {
        names(&text(folder, NAMES)?)
    }

    fn run(&self, _words: &[String], benchmark: &str, folder: &Path) -> Call {
        let options = format!("{SHORT} --benchmark-json={}", folder.join(FILE).display());
        call(&options, folder).with_env("VELLUM_BENCHMARK", benchmark)
    }

    fn samples(&self, folder: &Path) -> Result<Vec<Sample>, String> {
        samples(&text(folder, FILE)?)
    }

    fn needs(&self) -> &'static str {
        "is the command pytest, and is pytest-benchmark 3.1 or later installed beside it (pip install pytest-benchmark)?"
    }
}

/// A call with these options for pytest, and the plugin.
fn call(options: &str, folder: &Path) -> Call {
    let joined = |name: &str, first: OsString, between: &str| {
        let mut whole = first;
        if let Some(before) = std::env::var_os(name).filter(|before| !before.is_empty()) {
            whole.push(between);
            whole.push(before);
        }
        whole
    };
    // Nothing of the user's folder is written either.
    let here = folder.display();
    let options =
        format!("{options} -p {MODULE} -o cache_dir={here}/cache --benchmark-storage=file://{here}/storage");
    Call::of([])
        .with_file(format!("{MODULE}.py"), PLUGIN)
        .with_env("PYTEST_ADDOPTS", joined("PYTEST_ADDOPTS", options.into(), " "))
        .with_env("PYTHONPATH", joined("PYTHONPATH", folder.as_os_str().to_owned(), ":"))
}

/// The benchmarks that the plugin found.
pub(super) fn names(text: &str) -> Result<Vec<String>, String> {
    let document = json(text)?;
    let names = document.as_array().ok_or("its names are no list")?;
    Ok(once(names.iter().filter_map(Value::as_str).map(str::to_owned)))
}

/// The rounds of the one benchmark.
pub(super) fn samples(text: &str) -> Result<Vec<Sample>, String> {
    let document = json(text)?;
    let [benchmark] = document["benchmarks"].as_array().map_or(&[][..], Vec::as_slice) else {
        return Err("its results have no run of the benchmark".to_owned());
    };
    let data = benchmark["stats"]["data"].as_array().filter(|data| !data.is_empty());
    let data = data.ok_or("its results have no single times (stats.data)")?;
    data.iter().map(|one| Sample::new(one.as_f64().unwrap_or(f64::NAN) * SECOND_NS, None)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_seconds_of_one_iteration() {
        let kept =
            r#"{"benchmarks": [{"fullname": "test_x.py::test_sum[a b]", "stats": {"data": [1e-6, 2e-6]}}]}"#;
        let walls: Vec<f64> = samples(kept).unwrap().iter().map(|one| one.wall_ns.round()).collect();
        assert_eq!(walls, [1000.0, 2000.0]);
        for wrong in ["{}", "x", r#"{"benchmarks": []}"#, r#"{"benchmarks": [{"stats": {"data": []}}]}"#] {
            assert!(samples(wrong).is_err(), "{wrong}");
        }
        assert_eq!(names(r#"["t.py::a", "t.py::b[::]", "t.py::a"]"#).unwrap(), ["t.py::a", "t.py::b[::]"]);
        assert!(names("{}").is_err());
    }
}
