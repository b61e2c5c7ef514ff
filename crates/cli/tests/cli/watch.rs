//! `vellum watch` on a running program, and on a record of one.

use crate::common::{self, VELLUM, has, said, text};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use vellum_reference::{Availability, SourceKind};

/// A shell that computes until killed.
struct Busy(Child);

impl Busy {
    fn start() -> Busy {
        let script = "while :; do :; done";
        Busy(Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that waits until its input ends.
struct Waiting(Child);

impl Waiting {
    fn start() -> Waiting {
        Waiting(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn end(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end();
    }
}

/// Watches `program` until `wanted` lines are printed; returns the outcome of the watch and all lines.
fn watched_until(wanted: usize, options: &[&str], mut program: Waiting) -> (Output, Vec<String>) {
    let mut watch = Command::new(VELLUM)
        .args(["watch", &program.0.id().to_string()])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("vellum starts");
    let mut shown =
        BufReader::new(watch.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    let mut lines: Vec<String> = shown.by_ref().take(wanted).collect();
    program.end();
    lines.extend(shown);
    assert!(lines.len() >= wanted, "{lines:?}");
    (watch.wait_with_output().expect("it ends"), lines)
}

fn watch(arguments: &[&str]) -> Output {
    Command::new(VELLUM).arg("watch").args(arguments).output().expect("vellum starts")
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
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
    let busy = Busy::start();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("busy.watch");
    let ended =
        watch(&[&busy.pid(), "--once", "--delay", "100us", "--budget", "50%", "--record", text(&file)]);
    let (out, said) = (shown(&ended), said(&ended));
    assert!(ended.status.success(), "{out}{said}");
    has(
        &out,
        &[
            "vellum watch: sh (pid",
            "accessed bits",
            "interval 100 ms",
            "100 ms",
            "800 ms",
            "to recommend memory",
            "100 µs a fault, as given",
        ],
    );
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
    let damaged = watch(&[text(&file)]);
    assert_eq!(damaged.status.code(), Some(125));
    assert!(common::said(&damaged).contains(&format!("line {}", lines.len() + 1)), "{damaged:?}");
}

#[test]
fn json_has_one_object_per_line_and_ends_with_the_program() {
    if !accessed_bits() {
        return;
    }
    let short = Waiting::start();
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
        (
            &["no such program ever"][..],
            " is called \"no such program ever\"; give a pid, or a name as `ps -o comm`",
        ),
        (&["2147483647"], "error: there is no process 2147483647; "),
        (&["/etc/passwd"], "not a recorded watch (its first line is not the header of one)"),
        (&["--cgroup", "/proc/self"], "cgroup.procs"),
        (&["1", "--period", "1ms"], "the shortest is 100ms"),
        (&["1", "--delta", "1ms"], "from 50ms"),
        (&["1", "--budget", "0"], "percentage above 0"),
        (&["1", "--source", "idle-bitmap"], "the sources are auto"),
        (&[], "SUBJECT"),
    ] {
        let ended = watch(arguments);
        assert_eq!(ended.status.code(), Some(125), "{arguments:?}: {}", shown(&ended));
        assert!(said(&ended).contains(words), "{arguments:?}: {}", said(&ended));
    }
}

#[test]
fn sources_are_listed_with_reasons() {
    let ended = watch(&["--sources"]);
    assert!(ended.status.success());
    for kind in SourceKind::ALL {
        assert!(shown(&ended).contains(kind.name()), "{}", shown(&ended));
    }
}

#[test]
fn other_users_program_is_refused_with_a_reason() {
    if !accessed_bits() || !rustix::process::geteuid().is_root() {
        vellum_skip::skip("only root can become another user to be refused");
        return;
    }
    let busy = Busy::start();
    use std::os::unix::process::CommandExt;
    // A copy that any user can execute, as the build's directory may be private.
    let place = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .unwrap();
    let copy = place.path().join("vellum");
    std::fs::copy(VELLUM, &copy).unwrap();
    const NOBODY: u32 = 65534;
    let ended = Command::new(&copy)
        .args(["watch", &busy.pid(), "--once", "--delay", "1ms", "--budget", "50%", "--for", "60s"])
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .output();
    let Ok(ended) = ended else {
        vellum_skip::skip(format_args!("nobody may not execute a program here: {ended:?}"));
        return;
    };
    assert_eq!(ended.status.code(), Some(125), "{}", shown(&ended));
    assert!(said(&ended).contains("another user"), "{}", said(&ended));
}

#[test]
fn short_run_reports_the_time_needed_for_a_curve() {
    if !accessed_bits() {
        return;
    }
    // A program that uses almost no CPU time, and one that ends soon after using some.
    for script in ["sleep 0.3", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.2"] {
        let ended = common::sh(&[], script);
        let said = said(&ended);
        assert!(said.contains("too short to recommend memory: run it for about 2 s of CPU time"), "{said}");
        assert!(said.contains("peak"), "{said}");
    }
}

#[test]
fn idle_budget_and_burst_may_be_zero() {
    let none = ["--json", "--delay", "1ms", "--idle-budget", "0%", "--burst", "0s"];
    let (ended, lines) = watched_until(1, &none, Waiting::start());
    assert!(ended.status.success(), "{}", said(&ended));
    let header: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!((&header["idle_budget"], &header["burst_ns"]), (&Value::from(0.0), &Value::from(0)));
}
