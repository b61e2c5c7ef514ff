//! Tests of `vellum watch` on running programs, and on files that it recorded.

use crate::common::{
    self, Running, VELLUM, exits, files, has, out as shown, refused, said, text, vellum, vellum_as_nobody,
};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use vellum_reference::{Availability, SourceKind};

/// A shell that computes until killed.
fn busy() -> Running {
    Running::start(Command::new("sh").args(["-c", "while :; do :; done"]).stdout(Stdio::null()))
}

/// A program that waits until its input ends.
fn waiting() -> Running {
    Running::start(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()))
}

/// Watches `program` until `wanted` lines are printed; returns the outcome of the watch and all lines.
fn watched_until(wanted: usize, options: &[&str], mut program: Running) -> (Output, Vec<String>) {
    let mut command = Command::new(VELLUM);
    command.args(["watch", &program.pid()]).args(options).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = command.spawn().expect("vellum starts");
    let mut shown =
        BufReader::new(watch.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    let mut lines: Vec<String> = shown.by_ref().take(wanted).collect();
    drop(program.0.stdin.take());
    program.0.wait().unwrap();
    lines.extend(shown);
    assert!(lines.len() >= wanted, "{lines:?}");
    (watch.wait_with_output().expect("it ends"), lines)
}

fn watch(arguments: &[&str]) -> Output {
    vellum([&["watch"], arguments].concat())
}

pub(crate) fn accessed_bits() -> bool {
    let here = SourceKind::AccessedBits.availability();
    if here != Availability::Usable {
        vellum_skip::skip(format_args!("accessed bits cannot be read here: {here:?}"));
    }
    here == Availability::Usable
}

#[test]
fn one_cycle_is_shown_recorded_and_replayed() {
    if !accessed_bits() {
        return;
    }
    let busy = self::busy();
    let (_place, [file]) = files(["busy.watch"]);
    let ended =
        watch(&[&busy.pid(), "--once", "--delay", "100us", "--budget", "50%", "--record", text(&file)]);
    let out = common::out_of_success(&ended);
    has(&out, &["vellum watch: sh (pid", "accessed bits", "interval 100 ms", "800 ms"]);
    has(&out, &["to recommend memory", "100 µs a fault, as given"]);
    assert!(out.lines().all(|line| line.chars().count() <= 80 || line.contains("cpu ")), "{out}");
    let recorded = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["schema"], "vellum.watch/1");
    let last = lines.last().unwrap();
    assert!(last["curve"].as_array().unwrap().len() >= 4 && last["cycles"].as_u64() >= Some(1), "{last}");
    assert!(last["verdict"]["give"]["bytes"].as_u64() > Some(0), "{last}");
    // The record's last report equals the one shown before.
    let again = watch(&[text(&file)]);
    let whole = |text: &str| text[text.find("vellum watch:").unwrap()..].to_owned();
    assert_eq!(whole(&shown(&again)), whole(&out));
    // An incomplete last line is skipped.
    std::fs::write(&file, format!("{recorded}{{\"at_ns\": 1")).unwrap();
    assert!(shown(&watch(&[text(&file)])).contains("the last line is cut"));
    std::fs::write(&file, format!("{recorded}{{\"at_ns\": 1}}\n{recorded}")).unwrap();
    let damaged = exits(125, watch(&[text(&file)]));
    assert!(common::said(&damaged).contains(&format!("line {}", lines.len() + 1)), "{damaged:?}");
}

#[test]
fn json_has_one_object_per_line_and_ends_with_the_program() {
    if !accessed_bits() {
        return;
    }
    let short = waiting();
    let (ended, lines) = watched_until(3, &["--json", "--period", "200ms", "--delay", "1ms"], short);
    assert!(ended.status.success(), "{}", said(&ended));
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["delay"]["mean_ns"], 1e6);
    let last = lines.last().unwrap();
    assert_eq!(last["processes"], 0);
    assert!(last["curve_in"]["cpu_ns"].as_u64() > Some(0), "what a curve would have needed: {last}");
    assert!(said(&ended).contains("has ended"), "{}", said(&ended));
    common::documented("watch.md", lines.iter().flat_map(|line| line.as_object().unwrap().keys()));
}

#[test]
fn unwatchable_subject_is_refused_with_a_remedy() {
    for (arguments, words) in [
        (&["no such program"][..], " is called \"no such program\"; give a pid, or a name as `ps -o comm`"),
        (&["2147483647"], "error: there is no process 2147483647; "),
        (&["/etc/passwd"], "not a recorded watch (no header in its first line: "),
        (&["--cgroup", "/proc/self"], "cgroup.procs"),
        (&["1", "--period", "1ms"], "the shortest is 100ms"),
        (&["1", "--delta", "1ms"], "from 50ms"),
        (&["1", "--budget", "0"], "percentage above 0"),
        (&["1", "--source", "idle-bitmap"], "the sources are auto"),
        (&[], "SUBJECT"),
    ] {
        refused(&watch(arguments), words);
    }
}

#[test]
fn sources_are_listed_with_reasons() {
    let ended = exits(0, watch(&["--sources"]));
    has(&shown(&ended), &SourceKind::ALL.map(SourceKind::name));
}

#[test]
fn other_users_program_is_refused_with_a_reason() {
    if !accessed_bits() {
        return;
    }
    let busy = self::busy();
    let words = ["watch", &busy.pid(), "--once", "--delay", "1ms", "--budget", "50%", "--for", "60s"];
    let Some(ended) = vellum_as_nobody(&words) else { return };
    refused(&ended, "another user");
}

#[test]
fn short_run_reports_the_time_needed_for_a_curve() {
    if !accessed_bits() {
        return;
    }
    // A program that uses almost no CPU time, and one that ends soon after using some.
    for script in ["sleep 0.3", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.2"] {
        let ended = common::sh(&[], script);
        let told = "too short to recommend memory: run it for about 2 s of CPU time";
        has(&said(&ended), &[told, "peak"]);
    }
}

#[test]
fn idle_budget_and_burst_may_be_zero() {
    let none = ["--json", "--delay", "1ms", "--idle-budget", "0%", "--burst", "0s"];
    let (ended, lines) = watched_until(1, &none, waiting());
    assert!(ended.status.success(), "{}", said(&ended));
    let header: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!((&header["idle_budget"], &header["burst_ns"]), (&Value::from(0.0), &Value::from(0)));
}
