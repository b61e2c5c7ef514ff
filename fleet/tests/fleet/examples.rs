//! Tests that documentation, alerts and dashboard name existing metrics, and that all are documented.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use vellum_fleet::group::Kind;
use vellum_fleet::{Page, State, View};
use vellum_reference::Window;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// The metrics that a text names. Recorded metrics have colons.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("vellum_")).map(str::to_owned).collect()
}

/// All metrics, from a page with every value.
fn served() -> BTreeSet<String> {
    let group = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(group.path().join(name), text).unwrap();
    write("memory.current", "4096\n");
    write("memory.max", "8192\n");
    write("memory.events", "oom 1\noom_kill 1\n");
    write("memory.pressure", "some avg10=0.00 total=1\nfull avg10=0.00 total=1\n");
    let view = View {
        name: "a".into(),
        directory: group.path().to_owned(),
        state: State::Watched,
        worth_bytes: Some(1),
        window_seconds: Some(0.1),
        waiting: Some(0.01),
        advised_bytes: Some(1),
        slowdown_two_thirds: Some(0.1),
        advised_by_age_bytes: Some(1),
        untouched: vec![(1, 1)],
        curve: vec![Window { window_ns: 100_000_000, bytes: 1, faults_per_second: 1.0 }],
        first_curve_seconds: Some(1.0),
        ..View::default()
    };
    let page = Page {
        groups: vec![Arc::new(view)],
        kinds: vec![(Kind::Unit, 1)],
        names_known: Some(true),
        ..Page::default()
    };
    let page = vellum_fleet::readers::metrics(page);
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let mut names: BTreeSet<String> =
        samples.map(|line| line.split(['{', ' ']).next().unwrap_or_default().to_owned()).collect();
    // Absent where the kernel does not count stalls.
    names.insert("vellum_pressure_seconds_total".to_owned());
    names
}

#[test]
fn documentation_lists_exactly_the_served_metrics() {
    assert_eq!(named(&text("docs/fleet.md")), served());
}

#[test]
fn rules_and_dashboard_use_served_metrics() {
    for path in ["examples/prometheus/fleet.yml", "examples/prometheus/fleet-dashboard.json"] {
        let named = named(&text(path));
        assert!(named.len() > 5, "{path}: {named:?}");
        let unknown: Vec<String> = named.difference(&served()).cloned().collect();
        assert!(unknown.is_empty(), "{path} names {unknown:?}");
    }
    let dashboard: serde_json::Value =
        serde_json::from_str(&text("examples/prometheus/fleet-dashboard.json")).expect("JSON");
    assert!(dashboard["panels"].as_array().unwrap().len() >= 10);
}

#[test]
fn promtool_accepts_the_rules() {
    let rules = file("examples/prometheus/fleet.yml");
    let Ok(checked) = Command::new("promtool").args(["check", "rules"]).arg(rules).output() else {
        return vellum_skip::skip("there is no promtool here (Debian: prometheus)");
    };
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "{}{said}", String::from_utf8_lossy(&checked.stdout));
}
