//! Runs the experiments of Nishigaki 1981 in a tiny size, from seeds to SVG. No goal is checked.

use crate::sound;
use vellum_papers::nishigaki::{Experiment, Options, SCHEMA, run};
use vellum_papers::{Common, Scale};

fn seeded(seed: u64) -> Common {
    Common { seed: Some(seed), ..Common::default() }
}

#[test]
fn every_experiment_runs() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (mut told, mut names, mut figures) = (0, Vec::new(), Vec::new());
    let report = run(&Options::default(), Scale::Tiny, &mut |_| told += 1, |finding| {
        assert!(!finding.goals.is_empty() && !finding.runs.is_empty(), "{} found nothing", finding.name);
        assert!(finding.tables.iter().all(|table| !table.rows.is_empty()), "{}: empty", finding.name);
        figures.extend(sound::figures(finding, folder.path()));
        names.push(finding.name.clone());
    });
    assert_eq!(names, ["curves", "table1", "throughput"]);
    assert!(told > 15, "progress was reported {told} times");
    for figure in ["figure2-s1", "figure2-s3", "figure4", "figure5-jobs", "figure5-ready", "figure5-king"] {
        assert!(figures.contains(&format!("nishigaki-{figure}")), "{figure} is missing: {figures:?}");
    }
    let json: serde_json::Value = serde_json::from_str(&report.json()).expect("JSON");
    assert_eq!((&json["schema"], &json["scale"], &json["seed"]), (&SCHEMA.into(), &"tiny".into(), &1.into()));
    assert_eq!(json["experiments"][1]["tables"][0]["rows"][0]["window_mega_instructions"], 1.2);
}

#[test]
fn simulations_repeat_and_depend_on_the_seed() {
    let found = |seed| {
        let only = vec![Experiment::Throughput];
        let options = Options { only, common: seeded(seed), ..Options::default() };
        let report = run(&options, Scale::Tiny, &mut |_| (), |_| ());
        serde_json::to_value(&report.experiments).expect("JSON")
    };
    assert_eq!(found(5), found(5));
    assert_ne!(found(5), found(6));
}
