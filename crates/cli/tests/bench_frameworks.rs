//! `vellum bench --framework`: real suites of google-benchmark and pytest-benchmark. That of criterion is
//! `criterion_suite.rs`.
//!
//! Figures are not judged, with one exception: nine times the work takes longer.

mod common;

use common::{VELLUM, report, said, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A benchmark in both that differs, one with an awkward name, one that fails in one suite, one in each
/// alone.
const GOOGLE: &str = r#"
#include <benchmark/benchmark.h>
static void work(benchmark::State &state, long turns) {
    for (auto _ : state)
        for (long turn = 0; turn < turns; turn++) benchmark::DoNotOptimize(turn);
}
static void more(benchmark::State &state) { work(state, 1000 * TIMES); }
static void same(benchmark::State &state) { work(state, 1000); }
static void fails(benchmark::State &state) {
    if (TIMES > 1) state.SkipWithError("no such table");
    work(state, 1000);
}
BENCHMARK(more)->Arg(8);
BENCHMARK(same)->Name(NAME);
BENCHMARK(fails);
BENCHMARK(same)->Name(TIMES > 1 ? "new" : "old");
BENCHMARK_MAIN();
"#;
/// Every character that means something to one of the kinds of regular expressions.
const NAME: &str = r"f<x>.*+?(a|b)[^c]{1}\d $1";

const PYTEST: &str = r#"
import os
import pytest

TIMES = int(os.environ["VELLUM_TEST_TIMES"])

@pytest.mark.parametrize("n", [1000], ids=["f[x] (a|b) or not::/"])
def test_more(benchmark, n):
    benchmark(sum, range(n * TIMES))

def test_of_another_kind():
    assert True

class TestInside:
    def test_fails(self, benchmark):
        assert TIMES == 1, "no such table"
        benchmark(sum, range(1000))

if TIMES == 1:
    def test_old(benchmark):
        benchmark(sum, range(10))
else:
    def test_new(benchmark):
        benchmark(sum, range(10))
"#;

fn bench(place: &Path, options: &[&str], words: &[&str]) -> Output {
    let mut command = Command::new(VELLUM);
    command.current_dir(place).args(["bench", "--seed", "7"]).args(options).arg("--").args(words);
    command.output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rows = report["versus"].as_array().unwrap();
    rows.iter().find(|row| row["benchmark"] == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

/// What both frameworks' reports have.
fn judge(report: &Value, more: &str, fails: &str, [old, new]: [&str; 2], metric: &str) {
    let more = row(report, more);
    assert_eq!((&more["direction"], &more["metric"]), (&"more".into(), &metric.into()));
    assert_eq!(more["comparison"]["rounds"], 6);
    assert!(more["comparison"]["headline"]["control"]["low"].is_number());
    let apart = &report["apart"];
    assert_eq!((&apart["removed"], &apart["added"]), (&[old].as_slice().into(), &[new].as_slice().into()));
    let failed = &apart["failed"][0];
    assert!(failed["a"].is_null() && failed["name"] == fails, "{failed}");
    assert!(failed["b"].as_str().unwrap().contains("no such table"), "{failed}");
}

/// The suite of google-benchmark, that much work to do.
fn google(place: &Path, times: u32) -> Option<PathBuf> {
    let source = format!("#define TIMES {times}\n#define NAME R\"name({NAME})name\"\n{GOOGLE}");
    let folder = place.join(times.to_string());
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("suite.cc"), source).unwrap();
    let mut compiler = Command::new("c++");
    compiler.current_dir(&folder).args(["-O1", "suite.cc", "-o", "suite", "-lbenchmark", "-lpthread"]);
    match compiler.output() {
        Ok(ran) if ran.status.success() => Some(folder.join("suite")),
        _ => {
            vellum_skip::skip("there is no C++ compiler with google-benchmark (libbenchmark-dev)");
            None
        }
    }
}

#[test]
fn benchmarks_of_google_benchmark_are_compared() {
    let place = tempfile::tempdir().unwrap();
    let (Some(a), Some(b)) = (google(place.path(), 1), google(place.path(), 40)) else { return };
    let words = [text(&a), "--vs", text(&b)];
    let files = ["--json", "r.json", "--junit", "r.xml", "--markdown", "r.md"];
    let options =
        [&["--framework", "google", "--rounds", "6", "--fail-above", "10%", "-i"][..], &files].concat();
    let ended = bench(place.path(), &options, &words);
    assert_eq!(ended.status.code(), Some(1), "{}{}", out(&ended), said(&ended));
    let found = report(&place.path().join("r.json"));
    judge(&found, "more/8", "fails", ["old", "new"], "cpu");
    assert_eq!(row(&found, NAME)["comparison"]["rounds"], 6);
    assert!(out(&ended).lines().all(|line| line.chars().count() <= 80), "{}", out(&ended));
    let markdown = std::fs::read_to_string(place.path().join("r.md")).unwrap();
    assert!(markdown.contains("| more/8 |") && markdown.contains("only in B (added): new."), "{markdown}");
    let junit = std::fs::read_to_string(place.path().join("r.xml")).unwrap();
    let document = roxmltree::Document::parse(&junit).unwrap();
    let under = |tag: &str| document.descendants().filter(|node| node.has_tag_name(tag)).count();
    assert_eq!((under("testcase"), under("failure"), under("error")), (3, 1, 1), "{junit}");

    let wall =
        ["--framework", "google", "--rounds", "6", "--metric", "wall", "--only", "more", "-q", "--json", "-"];
    let ended = bench(place.path(), &wall, &words);
    assert_eq!(ended.status.code(), Some(0), "nothing failed among those chosen: {}", said(&ended));
    let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((found["versus"].as_array().unwrap().len(), &found["how"]["metric"]), (1, &"wall".into()));
}

#[test]
fn told_to_stop_it_reports_complete_rounds() {
    let place = tempfile::tempdir().unwrap();
    let Some(suite) = google(place.path(), 1) else { return };
    // Each run writes a line; the fifteenth stays until a signal ends it.
    let (pids, suite) = (place.path().join("pids"), text(&suite));
    let script = format!(
        "echo $$ >> {0}; [ $(wc -l < {0}) -lt 15 ] || exec sleep 1000; exec {suite} \"$@\"",
        text(&pids)
    );
    let wrapper = place.path().join("wrapper");
    std::fs::write(&wrapper, format!("#!/bin/sh\n{script}\n")).unwrap();
    assert!(Command::new("chmod").arg("+x").arg(&wrapper).status().unwrap().success());
    let mut command = Command::new(VELLUM);
    command.args(["bench", "--framework", "google", "--only", "more", "--time", "1000s", "--"]);
    command.args([text(&wrapper), "--vs", text(&wrapper)]).stdout(std::process::Stdio::piped());
    let bench = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let last = loop {
        let all = std::fs::read_to_string(&pids).unwrap_or_default();
        if all.lines().count() >= 15 {
            break all.lines().last().unwrap().to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert!(Command::new("kill").args(["-TERM", &bench.id().to_string()]).status().unwrap().success());
    let ended = bench.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(128 + 15), "{}{}", out(&ended), said(&ended));
    // Two runs listed; thirteen more are four whole rounds.
    assert!(out(&ended).contains("stopped early") && out(&ended).contains("4 rounds"), "{}", out(&ended));
    assert!(!Path::new("/proc").join(last).exists(), "the suite goes on alone");
}

/// A Python that can import pytest-benchmark.
fn python() -> Option<String> {
    let named = std::env::var("VELLUM_TEST_PYTHON").into_iter();
    let has = |python: &String| {
        let ran = Command::new(python).args(["-c", "import pytest_benchmark"]).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    let found = named.chain(["python3", "/usr/bin/python3"].map(str::to_owned)).find(has);
    if found.is_none() {
        vellum_skip::skip("no Python imports pytest_benchmark (VELLUM_TEST_PYTHON names another)");
    }
    found
}

#[test]
fn benchmarks_of_pytest_benchmark_are_compared() {
    let Some(python) = python() else { return };
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("test_speed.py"), PYTEST).unwrap();
    let times = [1, 40].map(|times| format!("VELLUM_TEST_TIMES={times}"));
    let pytest = |times| ["env", times, "PYTHONDONTWRITEBYTECODE=1", &python, "-m", "pytest", "."];
    let words = [&pytest(times[0].as_str())[..], &["--vs"], &pytest(times[1].as_str())].concat();
    let options = ["--framework", "pytest", "--rounds", "6", "--json", "r.json"];
    let ended = bench(place.path(), &options, &words);
    assert_eq!(ended.status.code(), Some(125), "{}{}", out(&ended), said(&ended));
    let found = report(&place.path().join("r.json"));
    let inside = "test_speed.py::TestInside::test_fails";
    judge(
        &found,
        "test_speed.py::test_more[f[x] (a|b) or not::/]",
        inside,
        ["test_speed.py::test_old", "test_speed.py::test_new"],
        "wall",
    );
    let mut left: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["r.json", "test_speed.py"], "nothing else is written here");
}

#[test]
fn programs_that_are_no_suites_are_told_from_suites() {
    let place = tempfile::tempdir().unwrap();
    let said_of = |options: &[&str], words: &[&str]| {
        let ended = bench(place.path(), options, words);
        assert_eq!(ended.status.code(), Some(125), "{}", out(&ended));
        said(&ended)
    };
    for (framework, called) in [("google", "google-benchmark"), ("criterion", "criterion")] {
        let words = ["true", "--vs", "true"];
        let message = said_of(&["--framework", framework], &words);
        assert!(message.contains(&format!("has no benchmarks of {called}")), "{message}");
        let message =
            said_of(&["--framework", framework], &["sh", "-c", "echo no table >&2; exit 3", "--vs", "true"]);
        assert!(message.contains("it exited with status 3 and said: no table"), "{message}");
    }
    let message = said_of(&["--framework", "pytest"], &["true", "--vs", "true"]);
    assert!(message.contains("pip install pytest-benchmark"), "{message}");
    let message = said_of(&["--framework", "google"], &["true"]);
    assert!(message.contains("add one other behind --vs"), "{message}");
    let message = said_of(&["--framework", "google", "--metric", "instructions"], &["true", "--vs", "true"]);
    assert!(message.contains("leave --metric instructions out"), "{message}");
    let lists = |name: &str| format!("case $1 in *list*) echo {name};; *) exit 3;; esac");
    let (a, b) = (lists("one"), lists("two"));
    let script = |of| ["sh", "-c", of, "sh"];
    let words = [&script(&a)[..], &["--vs"], &script(&b)].concat();
    let message = said_of(&["--framework", "google"], &words);
    assert!(message.contains("no benchmark in common; A has: one; B has: two"), "{message}");
    let words = [&script(&a)[..], &["--vs"], &script(&a)].concat();
    let message = said_of(&["--framework", "google"], &words);
    assert!(
        message.contains("no benchmark could be measured: one failed in A and B: it exited with status 3"),
        "{message}"
    );
}

#[test]
fn a_suite_of_another_revision_runs_in_its_own_tree() {
    let place = tempfile::tempdir().unwrap();
    let Some(suite) = google(place.path(), 1) else { return };
    let tree = place.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    let git = |words: &[&str]| {
        let ran = Command::new("git").current_dir(&tree).args(words).output();
        ran.ok().filter(|ran| ran.status.success()).is_some()
    };
    if !git(&["init", "--quiet", "--initial-branch=main", "."]) {
        return vellum_skip::skip("there is no git");
    }
    // A program outside of the tree, which reads the tree that it runs in.
    let wrapper = format!(
        "#!/bin/sh\ncat table >> {}\nexec {} \"$@\"\n",
        text(&place.path().join("read")),
        text(&suite)
    );
    let run = place.path().join("run");
    std::fs::write(&run, wrapper).unwrap();
    assert!(Command::new("chmod").arg("+x").arg(&run).status().unwrap().success());
    std::fs::write(tree.join("table"), "old\n").unwrap();
    let person = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
    assert!(git(&["add", "table"]) && git(&[&person[..], &["commit", "--quiet", "-m", "one"]].concat()));
    std::fs::write(tree.join("table"), "new\n").unwrap();
    let options = ["--framework", "google", "--vs-ref", "main", "--rounds", "1", "--only", "more"];
    let ended = bench(&tree, &options, &[text(&run)]);
    assert_eq!(ended.status.code(), Some(0), "{}{}", out(&ended), said(&ended));
    let read = std::fs::read_to_string(place.path().join("read")).unwrap();
    // Each is listed once; of the one round, A has two runs.
    let count = |word| read.lines().filter(|line| *line == word).count();
    assert_eq!((count("old"), count("new")), (3, 2), "{read}");
}
