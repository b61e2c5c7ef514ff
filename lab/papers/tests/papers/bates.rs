//! Runs the experiments of Bates 1999 in a tiny size, from clock readings to SVG. No time or goal is checked.

use crate::sound;
use vellum_measure::line::{Entry, OnError, Reader, write_series};
use vellum_papers::Scale;
use vellum_papers::bates::{Options, SCHEMA, run};

#[test]
fn every_experiment_runs() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (mut told, mut names, mut figures) = (0, Vec::new(), Vec::new());
    let (report, series) = run(&Options::default(), Scale::Tiny, &mut |_| told += 1, |finding| {
        assert!(!finding.tables.is_empty() && !finding.goals.is_empty(), "{} found nothing", finding.name);
        assert!(finding.tables.iter().all(|table| !table.rows.is_empty()), "{}: empty", finding.name);
        figures.extend(sound::figures(finding, folder.path()));
        names.push(finding.name.clone());
    })
    .expect("some clock can be read");
    assert_eq!(names, ["slow", "builtin", "collector"]);
    assert!(told > 3, "progress is reported");
    for figure in [1, 2, 3, 4, 10, 11, 12] {
        assert!(
            figures.contains(&format!("bates-figure{figure}")),
            "figure {figure} is missing: {figures:?}"
        );
    }

    let json: serde_json::Value = serde_json::from_str(&report.json()).expect("JSON");
    assert_eq!((&json["schema"], &json["scale"]), (&SCHEMA.into(), &"tiny".into()));
    assert_eq!(json["experiments"].as_array().map(Vec::len), Some(3));
    let mut lines = Vec::new();
    series.iter().for_each(|series| write_series(&mut lines, series).expect("finite times"));
    let entries: Vec<Entry> =
        Reader::new(lines.as_slice(), OnError::Refuse).map(|entry| entry.expect("lines of ours")).collect();
    assert_eq!(entries.len(), series.len());
    assert!(entries.iter().all(|entry| matches!(entry, Entry::Series(series) if series.name == "BASE")));
}
