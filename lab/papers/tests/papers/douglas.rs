//! Runs every experiment of Douglas 2011 in a tiny size, from worker processes to SVG. No time or goal is
//! checked. Vellum's library may be missing; the experiments then run without it.

use crate::{library, sound};
use vellum_papers::Scale;
use vellum_papers::douglas::{Bench, Experiment, Options, Places, SCHEMA, run};

#[test]
fn every_experiment_runs() {
    if !library().is_file() {
        vellum_skip::skip("the arms under Vellum's library (build it: cargo build -p vellum-runtime)");
    }
    let places = Places { worker: env!("CARGO_BIN_EXE_vellum-papers").into(), library: library() };
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
