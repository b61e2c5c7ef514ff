//! Every experiment of `papers smith` in a tiny size: the clients are compiled, run on every heap that is here and check
//! themselves. Nothing is timed and no goal is asked for.

use std::path::PathBuf;
use vellum_papers::smith::{CLIENTS, Experiment, Options, SCHEMA, run};
use vellum_papers::{Common, Scale, write_figures};

/// The library as cargo leaves it: beside the directory of test executables.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("this executable has a path");
    own.ancestors().nth(2).map(|folder| folder.join("libvellum.so")).expect("deps lies in a directory")
}

fn seeded(seed: u64) -> Common {
    Common { seed: Some(seed), ..Common::default() }
}

#[test]
fn every_experiment_runs_with_the_collectors_found() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (mut seen, mut figures) = (Vec::new(), 0);
    let options = Options { common: seeded(7), ..Options::default() };
    let report = run(&options, Scale::Tiny, &library(), &mut |_| {}, |finding| {
        let text = finding.text();
        assert!(text.contains("Goal"), "seed 7: no closing line:\n{text}");
        assert!(!text.contains("WRONG RESULT"), "seed 7:\n{text}");
        for table in &finding.tables {
            assert!(
                table.rows.iter().all(|row| row.len() == table.columns.len()),
                "{}: ragged rows",
                table.title
            );
        }
        for path in write_figures(finding, folder.path()).expect("a writable directory") {
            let svg = std::fs::read_to_string(&path).expect("a figure just written");
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{}", path.display());
            figures += 1;
        }
        seen.push(finding.name.clone());
    });
    let report = report.expect("a temporary folder can be written to");
    for (name, cure) in &report.own.missing {
        eprintln!("skipped: {name} is not here: {cure}");
        assert!(!cure.is_empty());
    }
    assert_eq!(seen.len(), Experiment::Cache as usize + 1);
    assert!(figures > CLIENTS.len(), "{figures} figures");
    let failed = report.experiments.iter().flat_map(|one| &one.runs).find(|run| !run["failure"].is_null());
    if let Some(run) = failed {
        let why = run["failure"].as_str().unwrap_or_default();
        // Some heaps are smaller than the client needs under some plan; and valgrind may not bear a collector's address space.
        assert!(why.contains("too small") || why.contains("valgrind"), "seed 7: {run}");
    }
    let value: serde_json::Value = serde_json::from_str(&report.json()).expect("the report is JSON");
    assert_eq!((value["schema"].as_str(), value["seed"].as_u64()), (Some(SCHEMA), Some(7)));
}
