//! Tests of the rendered metrics: which series there are, that no name breaks their format, and that
//! documentation, alerts and dashboard name exactly these.

use super::*;
use crate::group::{Place, place};
use crate::pods::Named;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn of_pod(named: &Named, directory: &Path) -> View {
    let identity = Identity::Kubernetes { pod: "u".into(), id: ID.into() };
    let mut view = View::new("kubepods/x", directory.to_owned(), &identity, Some(named));
    view.state = State::Watched;
    view.resident_bytes = 4096;
    view.worth_bytes = Some(2048);
    view.advised_bytes = Some(3072);
    view.slowdown_two_thirds = Some(0.25);
    view.advised_by_age_bytes = Some(1024);
    view.untouched = vec![(60, 512)];
    view.first_curve_seconds = Some(1.5);
    (view.window_seconds, view.waiting) = (Some(0.4), Some(0.01));
    let point = |number: u32| Window {
        window_ns: 100_000_000 << number,
        bytes: 1000 + u64::from(number),
        faults_per_second: 0.5,
    };
    view.curve = (0..12).map(point).collect();
    view
}

fn page(views: Vec<View>) -> String {
    let groups = views.into_iter().map(Arc::new).collect();
    families::page(Page { groups, names_known: Some(false), ..Page::default() })
}

fn named(namespace: &str, pod: &str, container: &str) -> Named {
    let container = Some(container.to_owned());
    Named { namespace: namespace.into(), pod: pod.into(), container, was_oom_killed: false }
}

#[test]
fn groups_use_the_governors_metric_names() {
    let group = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
    write("memory.current", "8192\n");
    write("memory.max", "max\n");
    let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=250\n";
    write("memory.pressure", pressure);
    let told = page(vec![of_pod(&named("shop", "web-0", "nginx"), group.path())]);
    let who = "name=\"shop/web-0/nginx\",namespace=\"shop\",pod=\"web-0\",container=\"nginx\"";
    for line in [
        format!("vellum_job_info{{{who},kind=\"kubernetes\",cgroup=\"/kubepods/x\"}} 1.0"),
        format!("vellum_job_worth_bytes{{{who}}} 2048.0"),
        format!("vellum_job_advised_bytes{{{who}}} 3072.0"),
        format!("vellum_job_advised_by_age_bytes{{{who}}} 1024.0"),
        format!("vellum_job_slowdown_two_thirds_ratio{{{who}}} 0.25"),
        format!("vellum_job_untouched_bytes{{{who},seconds=\"60\"}} 512.0"),
        format!("vellum_job_curve_bytes{{{who},window=\"0.1\"}} 1000.0"),
        format!("vellum_job_curve_bytes{{{who},window=\"204.8\"}} 1011.0"),
        format!("vellum_job_curve_fault_rate{{{who},window=\"6.4\"}} 0.5"),
        format!("vellum_job_watch_state{{{who},state=\"watched\"}} 1.0"),
        format!("vellum_job_charged_bytes{{{who}}} 8192.0"),
        format!("vellum_job_pressure_seconds_total{{{who},stall=\"some\"}} 1.5"),
        concat!("vellum_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1").to_owned(),
        "vellum_agent_names_known 0.0".to_owned(),
    ] {
        assert!(told.lines().any(|said| said == line), "no {line:?} in\n{told}");
    }
    assert!(!told.contains("job_limit_bytes{") && told.ends_with("# EOF\n"));
}

#[test]
fn page_exports_limits_that_were_too_small() {
    let group = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
    write("memory.max", "4096\n");
    let told = |was_oom_killed: bool| {
        let named = Named { was_oom_killed, ..named("shop", "web-0", "nginx") };
        let told = page(vec![of_pod(&named, group.path())]);
        let value = |name: &str| {
            let line = told.lines().find(|line| line.starts_with(&format!("vellum_job_{name}{{")))?;
            Some(line.rsplit_once(' ').unwrap().1.to_owned())
        };
        (value("oom_kills_total"), value("oom_limit_bytes"))
    };
    let (number, limit) = (|text: &str| Some(text.to_owned()), Some("4096.0".to_owned()));
    assert_eq!(told(false), (None, None));
    assert_eq!(told(true), (None, limit.clone()), "the container before this one");
    write("memory.events", "oom 0\noom_kill 1\n");
    assert_eq!(told(false), (number("1.0"), None), "the machine had no memory left");
    write("memory.events", "oom 1\noom_kill 1\n");
    assert_eq!(told(false), (number("1.0"), limit));
    write("memory.max", "max\n");
    assert_eq!(told(true), (number("1.0"), None));
}

/// A label cannot end its line or become another label.
#[test]
fn labels_are_escaped() {
    let evil = "x\",name=\"y\"} 1\nvellum_job_worth_bytes{name=\"bank\"} 9\\";
    let told = page(vec![of_pod(&named(evil, "a\\", "b\n"), Path::new("/nowhere"))]);
    let worth: Vec<&str> = told.lines().filter(|line| line.starts_with("vellum_job_worth_bytes")).collect();
    assert_eq!(worth.len(), 1, "{worth:?}");
    let escaped = "namespace=\"x\\\",name=\\\"y\\\"} 1\\nvellum_job_worth_bytes{name=\\\"bank\\\"} 9\\\\\",pod=\"a\\\\\",container=\"b\\n\"} 2048.0";
    assert!(worth[0].ends_with(escaped), "{}", worth[0]);
    assert!(told.lines().all(|line| line.starts_with('#') || line.starts_with("vellum_")), "{told}");
}

#[test]
fn unknown_values_are_not_exported() {
    let path = "system.slice/nginx.service";
    let Place::Job(identity) = place(path) else { panic!() };
    let told = page(vec![View::new(path, "/nowhere".into(), &identity, None)]);
    let samples: Vec<&str> = told.lines().filter(|line| line.starts_with("vellum_job_")).collect();
    assert_eq!(samples.len(), 1 + State::WORDS.len(), "{samples:?}");
    let info = "vellum_job_info{name=\"nginx.service\",unit=\"nginx.service\",kind=\"unit\",cgroup=\"/system.slice/nginx.service\"} 1.0";
    assert_eq!(samples[0], info);
}

/// A check by promtool; `None`, with a message, if promtool is missing.
fn checked(args: &[&str], input: &str) -> Option<Output> {
    let mut command = Command::new("promtool");
    command.arg("check").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        vellum_skip::skip("there is no promtool here (Debian: prometheus)");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap())
}

/// promtool accepts the page for collectors of text files, and the rules.
#[test]
fn promtool_finds_nothing_wrong() {
    let told = page(vec![
        of_pod(&named("shop", "web-0", "nginx"), Path::new("/nowhere")),
        of_pod(&named("a\"b\\", "c\nd", "e"), Path::new("/nowhere")),
    ]);
    let Some(done) = checked(&["metrics"], &text_file(&told)) else { return };
    // Status 3 stands for advice on names, which is no error.
    let said = format!("{done:?}");
    assert!(matches!(done.status.code(), Some(0 | 3)) && !said.contains("error while"), "{said}");
    let done = checked(&["rules", file(RULES).to_str().unwrap()], "").unwrap();
    assert!(done.status.success(), "{done:?}");
}

const RULES: &str = "examples/prometheus/fleet.yml";
const DASHBOARD: &str = "examples/prometheus/fleet-dashboard.json";

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The metrics that a text names. Recorded metrics have colons.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("vellum_")).map(str::to_owned).collect()
}

#[test]
fn documentation_and_examples_name_the_served_metrics() {
    let group = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
    write("memory.current", "4096\n");
    write("memory.max", "8192\n");
    write("memory.events", "oom 1\noom_kill 1\n");
    write("memory.pressure", "some avg10=0.00 total=1\nfull avg10=0.00 total=1\n");
    let told = page(vec![of_pod(&named("shop", "web-0", "nginx"), group.path())]);
    let samples = told.lines().filter(|line| !line.starts_with('#'));
    let mut served: BTreeSet<String> =
        samples.map(|line| line.split(['{', ' ']).next().unwrap_or_default().to_owned()).collect();
    // Absent where the kernel does not count stalls.
    served.insert("vellum_pressure_seconds_total".to_owned());
    let text = |path: &str| fs::read_to_string(file(path)).unwrap();
    assert_eq!(metrics(&text("docs/fleet.md")), served);
    for path in [RULES, DASHBOARD] {
        let named = metrics(&text(path));
        assert!(named.len() > 5, "{path}: {named:?}");
        let unknown: Vec<String> = named.difference(&served).cloned().collect();
        assert!(unknown.is_empty(), "{path} names {unknown:?}");
    }
    let dashboard: serde_json::Value = serde_json::from_str(&text(DASHBOARD)).expect("JSON");
    assert!(dashboard["panels"].as_array().unwrap().len() >= 10);
}
