//! `criterion`, of Rust: a bench target with `harness = false`.
//!
//! ```text
//! EXE --bench --list --format=terse                "NAME: benchmark", a line each
//! EXE --bench --exact … -- NAME                    $CRITERION_HOME/DIR/new/sample.json
//!                                                  {"iters": [2.0, 4.0, …], "times": [ns of all of them, …]}
//! ```
//!
//! `CRITERION_HOME` is a folder of ours, so no baseline of the user's is read or written. The file has
//! every sample; the format `bencher` has one figure with its deviation. `DIR` is the name in a form for
//! file systems, shortened, so it is not computed but looked for: one benchmark ran, and left one such
//! file.

use super::adapter::{Adapter, Sample, json, once, text, unless_given};
use super::call::{Call, OUT};
use std::path::{Path, PathBuf};

/// A short run: half the time of the others goes into warming up. Its own statistics are of no use here,
/// and are made cheap.
const SHORT: [&str; 5] =
    ["--warm-up-time=0.05", "--measurement-time=0.1", "--sample-size=10", "--nresamples=1000", "--noplot"];
/// How deep the file can lie: a group's folder, a function's, a parameter's, and `new`.
const DEPTH_MAX: usize = 6;

pub(super) struct Criterion;

impl Adapter for Criterion {
    fn list(&self, words: &[String], _folder: &Path) -> Call {
        let all = ["--list", "--format=terse"];
        Call::of(bench(words).chain(all.into_iter().map(str::to_owned)))
    }

    fn names(&self, folder: &Path) -> Result<Vec<String>, String> {
        Ok(names(&text(folder, OUT)?))
    }

    fn run(&self, words: &[String], benchmark: &str, folder: &Path) -> Call {
        let options = bench(words).chain(unless_given(words, &SHORT));
        let only = ["--exact", "--", benchmark].map(str::to_owned);
        Call::of(options.chain(only)).with_env("CRITERION_HOME", folder.join("criterion"))
    }

    fn samples(&self, folder: &Path) -> Result<Vec<Sample>, String> {
        let mut found = Vec::new();
        find(&folder.join("criterion"), DEPTH_MAX, &mut found);
        match &found[..] {
            [one] => samples(&text(one.parent().unwrap_or(folder), "sample.json")?),
            [] => Err("it wrote no samples: the benchmark did not run, or took no time".to_owned()),
            _ => Err("several benchmarks of the suite have this name; give each its own".to_owned()),
        }
    }

    fn needs(&self) -> &'static str {
        "is it the bench executable of criterion 0.4 or later? `cargo bench --bench NAME` as the command finds it"
    }
}

/// `--bench`, as cargo passes it: without it criterion only tests that the benchmarks run.
fn bench(words: &[String]) -> impl Iterator<Item = String> {
    unless_given(words, &["--bench"]).into_iter()
}

/// The benchmarks of a terse list. What else the program prints is not theirs.
pub(super) fn names(text: &str) -> Vec<String> {
    once(text.lines().filter_map(|line| line.strip_suffix(": benchmark")).map(str::to_owned))
}

/// The times of one iteration.
pub(super) fn samples(text: &str) -> Result<Vec<Sample>, String> {
    let document = json(text)?;
    let numbers = |field: &str| document[field].as_array().cloned().unwrap_or_default();
    let (iters, times) = (numbers("iters"), numbers("times"));
    if iters.is_empty() || iters.len() != times.len() {
        return Err(format!("sample.json has {} iters and {} times", iters.len(), times.len()));
    }
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    iters.iter().zip(&times).map(|(iters, ns)| Sample::new(number(ns) / number(iters), None)).collect()
}

/// All `new/sample.json` below a folder.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, depth, found);
        } else if path.ends_with("new/sample.json") {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_names_and_other_output() {
        let text =
            "laying out data: 3 files\nsum: benchmark\ngroup/of two/8: benchmark\nsum: benchmark\nx: test\n";
        assert_eq!(names(text), ["sum", "group/of two/8"]);
    }

    #[test]
    fn samples_are_times_of_one_iteration() {
        let kept = r#"{"sampling_mode":"Linear","iters":[2.0,4.0],"times":[30.0,60.5]}"#;
        let walls: Vec<f64> = samples(kept).unwrap().iter().map(|one| one.wall_ns).collect();
        assert_eq!(walls, [15.0, 15.125]);
        for wrong in ["{}", "[]", "x", r#"{"iters":[1.0],"times":[]}"#, r#"{"iters":[0.0],"times":[0.0]}"#] {
            assert!(samples(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_is_called_for_one_benchmark_and_writes_elsewhere() {
        let words = ["./b", "--sample-size=20"].map(str::to_owned);
        let call = Criterion.run(&words, "-odd [name]", Path::new("/t"));
        let said: Vec<_> = call.words.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(said[said.len() - 3..], ["--exact", "--", "-odd [name]"]);
        assert!(said.contains(&"--bench".into()) && !said.contains(&"--sample-size=10".into()), "{said:?}");
        assert_eq!(call.env, [("CRITERION_HOME".into(), "/t/criterion".into())]);
    }
}
