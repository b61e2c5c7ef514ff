//! Every workload under every allocator found here, in a tiny size, and one campaign from end to end.
//!
//! Nothing is timed: what is tested is that the workers run, check their own results, really use the preloaded
//! allocator, and that the executable judges, prints and writes what it should.

use std::path::Path;
use std::process::{Command, Output};
use vellum_bench::{EXPECT, WORKLOADS, peer};

const BENCH: &str = env!("CARGO_BIN_EXE_vellum-bench");

/// What a worker says when a workload is about functions that only Vellum has.
const ONLY_VELLUM: &str = "only Vellum brings it";

fn worker(library: Option<&Path>, words: &[&str]) -> Output {
    let mut command = Command::new(BENCH);
    command.arg("work").args(words).env_clear();
    if let Some(library) = library {
        command.env("LD_PRELOAD", library).env(EXPECT, library);
    }
    command.output().expect("the executable starts")
}

#[test]
fn every_workload_runs_under_every_allocator_found() {
    let roster = peer::discover(None);
    for missing in &roster.missing {
        eprintln!("skipped: {} is not here ({})", missing.name, missing.cure);
    }
    for peer in &roster.peers {
        for workload in WORKLOADS {
            let words: Vec<&str> = [workload.name].into_iter().chain(workload.tiny.iter().copied()).collect();
            let output = worker(peer.library.as_deref(), &words);
            let errors = String::from_utf8_lossy(&output.stderr);
            if errors.contains(ONLY_VELLUM) {
                continue;
            }
            assert!(
                output.status.success(),
                "{} under {}: {}\n{errors}",
                workload.name,
                peer.name,
                output.status
            );
            let line = String::from_utf8_lossy(&output.stdout);
            let value: serde_json::Value = serde_json::from_str(line.trim()).expect("one line of JSON");
            let figures = value.as_object().expect("an object of figures");
            assert!(!figures.is_empty() && figures.values().all(serde_json::Value::is_number), "{line}");
        }
    }
}

#[test]
fn a_library_that_is_not_preloaded_is_noticed() {
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
    let output =
        command.arg("--json").arg(&file).env_remove("CARGO").output().expect("the executable starts");
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
    // Two arms of glibc and one of mimalloc 3 in the one round that this cell has in a quick campaign.
    assert_eq!(runs.len(), 3, "{runs:?}");
    assert!(
        runs.iter().all(|run| run["failure"].is_null() && run["metrics"]["pair_ns"].is_number()),
        "{runs:?}"
    );
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    for (words, said) in [
        (&["--only", "nonesuch"][..], "--list"),
        (&["--peers", "glibk"], "glibc"),
        (&["--rounds", "0"], "1.."),
        (&["work", "nonesuch"], "nonesuch"),
        (&["work", "pair", "bytes"], "name=number"),
    ] {
        let output =
            Command::new(BENCH).args(words).env_remove("CARGO").output().expect("the executable starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(said), "{words:?}: {errors}");
    }
}
