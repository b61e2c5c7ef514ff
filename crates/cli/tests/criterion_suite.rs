//! `vellum bench --framework criterion`, with a real suite: this program.
//!
//! Run as a test, it compares itself with itself: twice as a suite, whose environment says how much to do.
//! Nothing is judged but that forty times the work takes longer.

mod common;

use common::{VELLUM, report, said, text};
use criterion::{BenchmarkId, Criterion};
use std::hint::black_box;
use std::process::Command;

/// How much work the suite does; without it, this program is the test.
const TIMES: &str = "VELLUM_TEST_TIMES";
/// Turns of the longer benchmarks' loop.
const TURNS: u64 = 1000;

fn main() {
    match std::env::var(TIMES) {
        Ok(times) => suite(times.parse().expect("a number")),
        Err(_) => {
            benchmarks_are_compared_one_by_one();
            nothing_in_common_is_said();
        }
    }
}

fn work(turns: u64) -> u64 {
    (0..black_box(turns)).fold(1, |sum, turn| black_box(sum ^ turn))
}

fn suite(times: u64) {
    println!("three files: laid out");
    let mut criterion = Criterion::default().configure_from_args();
    criterion.bench_function("more", |bencher| bencher.iter(|| work(TURNS * times)));
    let mut group = criterion.benchmark_group("group");
    group.bench_with_input(BenchmarkId::new("of [x] (a|b)+ $1", 8), &8, |bencher, _| {
        bencher.iter(|| work(TURNS));
    });
    group.finish();
    criterion.bench_function("fails", |bencher| {
        assert_eq!(times, 1, "no such table");
        bencher.iter(|| work(TURNS));
    });
    let name = if times == 1 { "old" } else { "new" };
    criterion.bench_function(name, |bencher| bencher.iter(|| work(TURNS)));
    criterion.final_summary();
}

/// Itself, against itself with forty times the work, with these options.
fn bench(options: &[&str]) -> std::process::Output {
    let own = std::env::current_exe().unwrap();
    let suite = |times: u32| ["env".to_owned(), format!("{TIMES}={times}"), text(&own).to_owned()];
    let mut command = Command::new(VELLUM);
    command.args(["bench", "--framework", "criterion", "--rounds", "6", "--seed", "7"]).args(options);
    command.arg("--").args(suite(1)).arg("--vs").args(suite(40)).output().unwrap()
}

fn benchmarks_are_compared_one_by_one() {
    let place = tempfile::tempdir().unwrap();
    let json = place.path().join("r.json");
    let ended = bench(&["--json", text(&json), "--fail-above", "10%"]);
    let shown = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(125), "{shown}{}", said(&ended));
    assert!(said(&ended).contains("fails failed in B alone: it exited with status 101"), "{}", said(&ended));
    assert!(said(&ended).contains("slower than allowed: more: "), "{}", said(&ended));
    let report = report(&json);
    let row = |name: &str| {
        let rows = report["versus"].as_array().unwrap();
        rows.iter().find(|row| row["benchmark"] == name).unwrap_or_else(|| panic!("no {name} in {shown}"))
    };
    assert_eq!((&row("more")["direction"], &row("more")["metric"]), (&"more".into(), &"wall".into()));
    assert_eq!(row("group/of [x] (a|b)+ $1/8")["comparison"]["rounds"], 6);
    assert_eq!(report["apart"]["removed"], serde_json::json!(["old"]));
    assert_eq!(report["apart"]["added"], serde_json::json!(["new"]));
    let failed = &report["apart"]["failed"][0];
    assert!(failed["a"].is_null() && failed["name"] == "fails", "{failed}");
    assert!(failed["b"].as_str().unwrap().contains("no such table"), "{failed}");
    // Three arms of two benchmarks, a figure a round.
    let series = report["series"].as_array().unwrap();
    assert_eq!(series.len(), 6);
    assert!(series.iter().all(|one| one["observations"]["value"].as_array().unwrap().len() == 6));
    assert_eq!(report["how"]["framework"], "criterion");
}

fn nothing_in_common_is_said() {
    let ended = bench(&["--only", "nosuch"]);
    assert_eq!(ended.status.code(), Some(125));
    assert!(
        said(&ended).contains("no benchmark has \"nosuch\" in its name; A has: more, "),
        "{}",
        said(&ended)
    );
}
