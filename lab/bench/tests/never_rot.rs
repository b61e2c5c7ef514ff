//! Tests that run everything in a tiny size, to show that it still works: every workload, with the
//! allocators and tools found on this machine, and whole runs of the benchmark.
//!
//! No times are compared. The workers must run, verify their own results and use the preloaded allocator.
//! The benchmark must judge, print and write the results.

use std::path::Path;
use std::process::{Command, Output};
use vellum_bench::{EXPECT, WORKLOADS, peer};

const BENCH: &str = env!("CARGO_BIN_EXE_vellum-bench");

/// A worker's message if its workload needs functions that only Vellum has.
const ONLY_VELLUM: &str = "only Vellum brings it";

fn worker(library: Option<&Path>, words: &[&str]) -> Output {
    let mut command = Command::new(BENCH);
    command.arg("work").args(words).env_clear();
    if let Some(library) = library {
        command.env("LD_PRELOAD", library).env(EXPECT, library);
    }
    command.output().expect("the executable starts")
}

/// The figures that a worker printed.
fn figures(what: &str, output: &Output) -> serde_json::Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{errors}", output.status);
    let line = String::from_utf8_lossy(&output.stdout);
    let value: serde_json::Value = serde_json::from_str(line.trim()).expect("one line of JSON");
    let figures = value.as_object().expect("an object of figures");
    assert!(!figures.is_empty() && figures.values().all(serde_json::Value::is_number), "{line}");
    value
}

#[test]
fn every_workload_runs_under_every_allocator_found() {
    let roster = peer::discover(None);
    for missing in &roster.missing {
        vellum_skip::skip(format_args!("{} is not here ({})", missing.name, missing.cure));
    }
    for peer in &roster.peers {
        for workload in WORKLOADS.iter().filter(|workload| workload.needs.is_empty()) {
            let output = worker(peer.library.as_deref(), &[&[workload.name], workload.tiny].concat());
            if !String::from_utf8_lossy(&output.stderr).contains(ONLY_VELLUM) {
                figures(&format!("{} under {}", workload.name, peer.name), &output);
            }
        }
    }
}

#[test]
fn a_library_that_is_not_preloaded_is_an_error() {
    let mut command = Command::new(BENCH);
    command.args(["work", "pair", "bytes=4096"]).env_clear().env(EXPECT, "/nonexistent/libother.so");
    let output = command.output().expect("the executable starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("did not preload"));
}

#[test]
fn a_campaign_prints_its_table_and_writes_every_run() {
    let folder = tempfile::tempdir().expect("a folder for the result");
    let file = folder.path().join("result.json");
    let mut command = Command::new(BENCH);
    command.args([
        "--quick",
        "--only",
        "pair-1M",
        "--peers",
        "glibc,mimalloc3",
        "--rounds",
        "2",
        "--seed",
        "3",
    ]);
    let output = command.arg("--json").arg(&file).output().expect("the executable starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in ["peers: glibc", "mimalloc3", "1 MiB", "targets:"] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    let value: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).expect("the result was written")).expect("it is JSON");
    assert_eq!(value["schema"], vellum_bench::SCHEMA);
    assert_eq!(value["settings"]["seed"], 3);
    let runs = value["runs"].as_array().expect("runs");
    // Two arms of glibc and one of mimalloc 3, in the single round of this cell in a quick campaign.
    assert_eq!(runs.len(), 3, "{runs:?}");
    assert!(
        runs.iter().all(|run| run["failure"].is_null() && run["metrics"]["pair_ns"].is_number()),
        "{runs:?}"
    );
}

#[test]
fn every_workload_with_tools_runs_if_they_are_found() {
    let folder = tempfile::tempdir().expect("a folder for the tools");
    let tools = format!("tools={}", folder.path().display());
    for workload in WORKLOADS.iter().filter(|workload| !workload.needs.is_empty()) {
        let prepared =
            workload.needs.iter().try_for_each(|tool| tool.prepare(Path::new(BENCH), folder.path()));
        if let Err(missing) = prepared {
            vellum_skip::skip(format_args!(
                "{}: {} is not here ({})",
                workload.name, missing.name, missing.cure
            ));
            continue;
        }
        let figures =
            figures(workload.name, &worker(None, &[&[workload.name, &tools], workload.tiny].concat()));
        assert!(workload.name != "cost" || figures["miscounted"] == 0.0, "{figures}");
    }
}

#[test]
fn a_campaign_of_timings_prints_its_goals_and_writes_every_run() {
    let folder = tempfile::tempdir().expect("a folder for the result");
    let file = folder.path().join("result.json");
    let mut command = Command::new(BENCH);
    command.args(["--quick", "--only", "timing-control-cpu", "--rounds", "2", "--json"]).arg(&file);
    let output = command.output().expect("the executable starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in ["2 repeats", "Short control runs", "CPU-bound", "Goals", ">= 90 %", "targets:"] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    let value: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).expect("the result was written")).expect("it is JSON");
    let goals = value["goals"].as_array().expect("goals");
    assert!(
        goals.iter().any(|goal| goal["what"].as_str().is_some_and(|what| what.contains("20 control runs")))
    );
    let runs = value["runs"].as_array().expect("runs");
    assert_eq!(runs.iter().filter(|run| run["arm"] == "vellum").count(), 2, "{runs:?}");
}

#[test]
fn a_campaign_of_collectors_prints_its_goals_and_missing_collectors() {
    let mut command = Command::new(BENCH);
    command.args(["--quick", "--only", "gc-short-16", "--rounds", "1"]);
    let output = command.output().expect("the executable starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for missing in text.lines().filter(|line| line.starts_with("missing: ")) {
        vellum_skip::skip(format_args!("{missing}"));
    }
    for part in ["short-lived 16-byte objects", "mark_sweep", "<= 0.500 libgc", "targets:"] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    for (words, said) in [
        (&["--only", "nonesuch"][..], "--list"),
        (&["--peers", "glibk"], "glibc"),
        (&["--rounds", "0"], "1.."),
        (&["work", "nonesuch"], "nonesuch"),
        (&["work", "pair", "bytes"], "name=value"),
        (&["--only", "timing-nonesuch"], "--list"),
        (&["--only", "gc-nonesuch"], "--list"),
        (&["work", "control", "kernel=sundial", "a=50", "times=1"], "sundial"),
    ] {
        let output = Command::new(BENCH).args(words).output().expect("the executable starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(said), "{words:?}: {errors}");
    }
}
