//! Tests of the dashboard and alert rules in `examples/prometheus`: they are valid and use existing metrics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use vellum_governor::{JobSnapshot, Snapshot, Untouched, readers};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/prometheus").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(example(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// The names of all metrics, by an answer in which nothing is unknown.
fn served() -> BTreeSet<String> {
    let job = JobSnapshot {
        name: "a".into(),
        worth_bytes: Some(1),
        advised_bytes: Some(1),
        slowdown_two_thirds: Some(0.5),
        window_seconds: Some(1.0),
        waiting: Some(0.1),
        untouched: vec![Untouched { seconds: 1, bytes: 1 }],
        ..JobSnapshot::default()
    };
    let answer = readers::metrics(Snapshot { stalled: Some(0.0), jobs: vec![job], ..Snapshot::default() });
    let samples = answer.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.split(['{', ' ']).next().unwrap_or_default().to_owned()).collect()
}

/// The names of metrics in expressions and elsewhere.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("vellum_")).map(str::to_owned).collect()
}

#[test]
fn every_metric_of_the_dashboard_and_of_the_rules_is_served() {
    let served = served();
    for name in ["dashboard.json", "alerts.yml"] {
        let named = named(&text(name));
        assert!(named.len() > 5, "{name}: {named:?}");
        let unknown: Vec<&String> = named.difference(&served).collect();
        assert!(unknown.is_empty(), "{name} names {unknown:?}, and served are {served:?}");
    }
}

#[test]
fn the_documentation_lists_what_is_served_and_nothing_else() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/govern.md");
    let documented = named(&std::fs::read_to_string(path).unwrap());
    assert_eq!(documented, served());
}

#[test]
fn the_dashboard_is_one() {
    let dashboard: serde_json::Value = serde_json::from_str(&text("dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().unwrap();
    let numbers: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert!(panels.len() >= 10 && numbers.len() == panels.len(), "panels have numbers of their own");
    for panel in panels {
        assert!(!panel["title"].as_str().unwrap().is_empty(), "{panel}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "a data source that can be chosen");
        let place = &panel["gridPos"];
        assert!(place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24, "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            assert!(target["expr"].as_str().unwrap().contains("vellum_"), "{target}");
        }
    }
}

#[test]
fn every_rule_is_whole() {
    let rules = text("alerts.yml");
    let each: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(each.len() >= 5);
    for rule in each {
        for key in ["expr: ", "severity: ", "summary: ", "description: "] {
            assert_eq!(rule.matches(key).count(), 1, "{key} in {rule}");
        }
    }
}

#[test]
fn prometheus_takes_the_rules() {
    let checked = Command::new("promtool").args(["check", "rules"]).arg(example("alerts.yml")).output();
    let Ok(checked) = checked else {
        return vellum_skip::skip("there is no promtool here (Debian: prometheus)");
    };
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "{}{said}", String::from_utf8_lossy(&checked.stdout));
}
