//! Every experiment of Douglas in a tiny size, from worker processes to SVG. Nothing is timed and no goal is
//! checked.
//!
//! Experiments start workers. Here the test's own executable is the worker if its first word is [`WORKER`].
//! Vellum's library is another crate's product and may be missing; the experiments then run without it.

#[path = "papers/sound.rs"]
mod sound;

use std::path::PathBuf;
use std::process::ExitCode;
use vellum_papers::Scale;
use vellum_papers::douglas::{Bench, Experiment, Options, Places, SCHEMA, WORKER, run, work};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((first, rest)) if first == WORKER => worker(rest),
        // The runner lists the tests, or has filtered all of them out.
        Some((first, _)) if first == "--list" => {
            println!("every_experiment_runs: test");
            ExitCode::SUCCESS
        }
        _ => {
            every_experiment_runs();
            println!("test every_experiment_runs ... ok");
            ExitCode::SUCCESS
        }
    }
}

fn worker(words: &[String]) -> ExitCode {
    match work(&words[0], &words[1..]) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The library where cargo puts it: beside the directory of test executables.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("this executable has a path");
    own.ancestors().nth(2).map(|folder| folder.join("libvellum.so")).expect("deps lies in a directory")
}

fn every_experiment_runs() {
    let own = std::env::current_exe().expect("this executable has a path");
    let there = library().is_file();
    if !there {
        vellum_skip::skip("the arms under Vellum's library (build it: cargo build -p vellum-runtime)");
    }
    let places = Places { worker: own, library: library() };
    let folder = tempfile::tempdir().expect("a temporary directory");
    let seed = 7;
    let mut heard = 0;
    let mut progress = |_: vellum_papers::Progress<'_>| heard += 1;
    let mut bench = Bench::new(Scale::Tiny, seed, places, &mut progress);
    let mut figures = 0;
    let report = run(&Options::default(), &mut bench, |finding| {
        assert!(
            !finding.tables.is_empty() && !finding.runs.is_empty(),
            "seed {seed}: {} found nothing",
            finding.name
        );
        figures += sound::figures(finding, folder.path()).len();
        let failed = finding.runs.iter().filter(|run| !run["failure"].is_null());
        assert_eq!(failed.map(ToString::to_string).next(), None, "seed {seed}: {}", finding.name);
    });
    assert!(heard > 50, "progress was reported {heard} times");
    assert_eq!(report.experiments.len(), Experiment::Remap as usize + 1);
    assert!(figures >= 9, "{figures} figures");
    let value: serde_json::Value = serde_json::from_str(&report.json()).expect("the report is JSON");
    assert_eq!((value["schema"].as_str(), value["seed"].as_u64()), (Some(SCHEMA), Some(seed)));
    assert_eq!(value["experiments"][0]["tables"][0]["rows"][0]["block"], "4 KiB");
}
