//! The experiments of Bates in a tiny size, from stamps to SVG. Nothing is timed and no goal is checked.

use vellum_measure::line::{Entry, OnError, Reader, write_series};
use vellum_papers::bates::{Options, SCHEMA, run};
use vellum_papers::{Scale, write_figures};

#[test]
fn every_experiment_runs() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (mut told, mut names, mut figures) = (0, Vec::new(), Vec::new());
    let (report, series) = run(&Options::default(), Scale::Tiny, &mut |_| told += 1, |finding| {
        let text = finding.text();
        assert!(text.contains("Goal"), "no closing line:\n{text}");
        assert!(!finding.tables.is_empty() && !finding.goals.is_empty(), "{} found nothing", finding.name);
        for table in &finding.tables {
            let even = table.rows.iter().all(|row| row.len() == table.columns.len());
            assert!(even && !table.rows.is_empty(), "{}: ragged or empty", table.title);
        }
        for path in write_figures(finding, folder.path()).expect("a writable directory") {
            let svg = std::fs::read_to_string(&path).expect("a figure just written");
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{}", path.display());
            figures.push(path.file_stem().expect("a name").to_string_lossy().into_owned());
        }
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

#[test]
fn one_experiment_can_be_chosen() {
    let options = Options { only: vec![vellum_papers::bates::Experiment::Builtin], ..Options::default() };
    let (report, _) = run(&options, Scale::Tiny, &mut |_| (), |_| ()).expect("some clock can be read");
    assert_eq!(report.experiments.len(), 1);
}
