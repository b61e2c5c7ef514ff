//! Every experiment of `papers smith` in a tiny size: the clients are compiled, run on every heap found
//! here and check themselves. No time or goal is checked.

use crate::{library, sound};
use std::path::PathBuf;
use vellum_papers::smith::{CLIENTS, Experiment, Libraries, Options, SCHEMA, run};
use vellum_papers::{Common, Scale};

/// The libraries where cargo puts them: beside the directory of test executables.
fn libraries() -> Libraries {
    let libgc = library().with_file_name("libgc");
    let why = format!("{} has no libgc.so.1: ./build", libgc.display());
    let libgc = if libgc.join("libgc.so.1").is_file() { Ok(libgc) } else { Err(why) };
    Libraries { vellum: library(), libgc }
}

fn seeded(seed: u64) -> Common {
    Common { seed: Some(seed), ..Common::default() }
}

#[test]
fn every_experiment_runs_with_the_collectors_found() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (mut seen, mut figures) = (Vec::new(), 0);
    let options = Options { common: seeded(7), libgc: true, ..Options::default() };
    let libraries = libraries();
    if let Err(why) = &libraries.libgc {
        vellum_skip::skip(format_args!("programs written for libgc on Vellum's library: {why}"));
    }
    let report = run(&options, Scale::Tiny, &libraries, &mut |_| {}, |finding| {
        figures += sound::figures(finding, folder.path()).len();
        seen.push(finding.name.clone());
    });
    let report = report.expect("a temporary folder can be written to");
    for missing in report.own["missing"].as_array().expect("a list") {
        vellum_skip::skip(format_args!("not here: {missing}"));
        assert!(!missing[1].as_str().unwrap_or_default().is_empty());
    }
    assert_eq!(seen.len(), Experiment::Libgc as usize + 1);
    assert!(figures > CLIENTS.len(), "{figures} figures");
    let failed = report.experiments.iter().flat_map(|one| &one.runs).find(|run| !run["failure"].is_null());
    if let Some(run) = failed {
        let why = run["failure"].as_str().unwrap_or_default();
        // Some heaps are too small for a client under some plan.
        assert!(why.contains("too small"), "seed 7: {run}");
    }
    let value: serde_json::Value = serde_json::from_str(&report.json()).expect("the report is JSON");
    assert_eq!((value["schema"].as_str(), value["seed"].as_u64()), (Some(SCHEMA), Some(7)));
}

#[test]
fn a_missing_library_is_reported() {
    let options = Options { common: seeded(7), only: vec![Experiment::Libgc], ..Options::default() };
    let nowhere = PathBuf::from("/nonexistent/libvellum.so");
    let libraries = Libraries { vellum: nowhere, libgc: Err("no libgc.so.1 here: build it".to_owned()) };
    let mut text = String::new();
    let report = run(&options, Scale::Tiny, &libraries, &mut |_| {}, |finding| text += &finding.text());
    assert!(report.is_ok_and(|report| report.experiments.len() == 1));
    assert!(
        text.contains("no libgc.so.1 here: build it") && text.contains("Goal: none could be judged"),
        "{text}"
    );
    let empty = tempfile::tempdir().expect("a temporary directory");
    let libraries = Libraries { libgc: Ok(empty.path().to_path_buf()), ..libraries };
    let mut text = String::new();
    let report = run(&options, Scale::Tiny, &libraries, &mut |_| {}, |finding| text += &finding.text());
    let report = report.expect("a temporary folder can be written to");
    if report.own["collectors"][0] == "libgc" {
        assert!(
            text.contains("the loader takes"),
            "libgc's library would be measured under another name:\n{text}"
        );
        assert!(report.experiments[0].runs.is_empty());
    } else {
        vellum_skip::skip("libgc is not here to be taken for Vellum's");
    }
}
