//! Tests of `vellum govern` and `vellum top`: refused job tables, messages, a governor that hangs or stops.

use crate::common::{self, VELLUM, exits, has, said, text, vellum};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const FOREVER: &str = "while :; do sleep 0.05; done";

pub(crate) fn table(folder: &Path, head: &str, jobs: &[(&str, &str)]) -> std::path::PathBuf {
    let mut table = format!("[governor]\nsockets = \"s\"\nperiod = \"100 ms\"\nturn = \"1 s\"\n{head}\n");
    for (name, script) in jobs {
        table += &format!("[[job]]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", {script:?}]\n");
    }
    let path = folder.join("jobs.toml");
    std::fs::write(&path, table).unwrap();
    path
}

/// A running `vellum govern --json`.
pub(crate) struct Governing {
    pub(crate) child: Child,
    lines: Box<dyn BufRead + Send>,
    /// The jobs' first processes, each the leader of a session.
    pub(crate) jobs: Vec<i32>,
}

impl Governing {
    pub(crate) fn start(table: &Path) -> Governing {
        let mut command = Command::new(VELLUM);
        command.args(["govern", "--json"]).arg(table).stdout(Stdio::piped());
        let mut child = command.spawn().expect("vellum starts");
        let lines = Box::new(BufReader::new(child.stdout.take().unwrap()));
        Governing { child, lines, jobs: Vec::new() }
    }

    /// Reads to the next event called `name`.
    pub(crate) fn event(&mut self, name: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended before {name}");
            let event: Value = serde_json::from_str(&line).expect("a line of JSON");
            assert_eq!(event["schema"], "vellum.govern/1");
            if event["event"] == "started" {
                self.jobs.push(event["pid"].as_i64().unwrap() as i32);
            }
            if event["event"] == name {
                return event;
            }
        }
    }

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: `kill` accesses no memory; the child has not been waited for, so its id is valid.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Reads all further events in the background.
    pub(crate) fn drain(&mut self) {
        let lines = std::mem::replace(&mut self.lines, Box::new(std::io::empty()));
        std::thread::spawn(move || lines.lines().for_each(drop));
    }

    fn letters(&self) -> String {
        self.jobs.iter().map(|pid| letter(*pid)).collect()
    }

    fn until(&self, what: &str, done: impl Fn(&str) -> bool) {
        common::until(what, || done(&self.letters()));
    }
}

impl Drop for Governing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in &self.jobs {
            // SAFETY: `kill` accesses no memory; the group is a job of this test, or gone and refused.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
    }
}

fn letter(pid: i32) -> char {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
}

#[test]
fn invalid_table_is_refused_with_line_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), "budget = \"6 GX\"", &[("a", "touch started")]);
    for options in [&["govern"][..], &["govern", "--check"]] {
        let refused =
            exits(125, Command::new(VELLUM).args(options).arg(&path).current_dir(&folder).output().unwrap());
        let expected = format!("error: {}:5: budget \"6 GX\": write a size", text(&path));
        assert!(said(&refused).starts_with(&expected), "{}", said(&refused));
    }
    assert!(!folder.path().join("started").exists() && !folder.path().join("s").exists());
    let missing = vellum(["govern", "/no/such/table"]);
    assert!(said(&missing).contains("/no/such/table: cannot be read"), "{}", said(&missing));
}

#[test]
fn check_lists_jobs_and_starts_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), "", &[("a", "touch started"), ("b", "true")]);
    let checked =
        Command::new(VELLUM).args(["govern", "--check"]).arg(&path).current_dir(&folder).output().unwrap();
    let out = common::out_of_success(&checked);
    assert!(out.starts_with("the table is valid; jobs: 2\n  a  priority 5  sh -c"), "{out}");
    assert!(!folder.path().join("started").exists());
}

#[test]
fn hanging_governor_leaves_no_job_frozen_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), "budget = \"1 MiB\"", &[("a", FOREVER), ("b", FOREVER)]);
    let mut governing = Governing::start(&path);
    let governor = governing.child.id() as i32;
    // The signal may come between two turns, when no job is suspended; then it is sent again.
    loop {
        governing.event("suspended");
        governing.signal(libc::SIGSTOP);
        governing.until("the governor stops", |_| letter(governor) == 'T');
        if governing.letters().contains('T') {
            break;
        }
        governing.signal(libc::SIGCONT);
    }
    governing.until("all run again", |letters| !letters.contains('T'));
    governing.signal(libc::SIGCONT);
    governing.event("guardian");
    governing.event("suspended");
}

#[test]
fn stop_signal_leaves_the_jobs_running() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let folder = tempfile::tempdir().unwrap();
        let path = table(folder.path(), "budget = \"1 MiB\"", &[("a", FOREVER), ("b", FOREVER)]);
        let mut governing = Governing::start(&path);
        governing.event("suspended");
        governing.signal(signal);
        assert_eq!(governing.event("stopped")["running"], 2);
        assert_eq!(governing.child.wait().unwrap().code(), Some(0));
        governing.until("all run", |letters| letters.chars().all(|letter| "RSD".contains(letter)));
        assert!(!folder.path().join("s").exists());
    }
}

#[test]
fn top_shows_the_jobs_and_metrics_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), "metrics = \"127.0.0.1:0\"", &[("first", FOREVER), ("second", FOREVER)]);
    let mut governing = Governing::start(&path);
    let state = governing.event("state");
    assert_eq!(state["state"]["jobs"][1]["name"], "second");
    let sockets = folder.path().join("s");
    let shown = common::out_of_success(&vellum(["top", "--once", "--sockets", text(&sockets)]));
    has(&shown, &["first", "second", "running", "knee", "window", "faults/s", "MiB"]);
    assert_eq!(common::wide(&shown), None, "{shown}");
    let mut top = Command::new(VELLUM);
    top.args(["top", "--json", "--sockets", text(&sockets)]);
    let mut top = top.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let state: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&state["schema"], &state["jobs"][0]["name"]), (&"vellum.govern/1".into(), &"first".into()));
    // `vellum top` ends with its governor.
    governing.signal(libc::SIGTERM);
    lines.read_to_string(&mut line).unwrap();
    assert!(top.wait().unwrap().success());
}

#[test]
fn top_without_a_governor_fails_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let alone = exits(125, vellum(["top", "--sockets", text(folder.path())]));
    has(&said(&alone), &["no governor answers there", "--sockets"]);
}

#[test]
fn closed_output_ends_the_governor_and_not_the_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), "", &[("a", FOREVER)]);
    let mut governing = Governing::start(&path);
    governing.event("started");
    governing.lines = Box::new(std::io::empty());
    assert_eq!(governing.child.wait().unwrap().code(), Some(0));
    assert!("RSD".contains(&governing.letters()));
}
