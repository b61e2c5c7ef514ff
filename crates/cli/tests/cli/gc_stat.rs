//! Tests of `vellum gc-stat` on real processes: a running process, a program that it starts, a process that
//! ends during the watch, and processes without readable counters.

use crate::common::held::{linked, runtime};
use crate::common::{Running, VELLUM, exits, has, out_of_success, report, said, text, vellum_as_nobody};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Output, Stdio};

/// A running program that waits for a line of input.
struct Waiting {
    child: Running,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Waiting {
    fn start(program: &Path, collections: u32) -> Waiting {
        let mut command = Command::new(program);
        command.arg(collections.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Running::start(&mut command);
        let (input, output) = (child.0.stdin.take(), child.0.stdout.take().expect("a pipe"));
        let mut running = Waiting { child, input, output: BufReader::new(output) };
        running.wait();
        running
    }

    fn wait(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert_eq!(line, "done\n");
    }

    fn again(&mut self) {
        self.input.as_ref().expect("it runs").write_all(b"\n").expect("a pipe");
        self.wait();
    }

    fn end(&mut self) {
        drop(self.input.take());
        assert_eq!(self.child.0.wait().expect("it ends").code(), Some(7));
    }
}

fn gc_stat(arguments: &[&str]) -> Command {
    let mut command = Command::new(VELLUM);
    command.arg("gc-stat").args(arguments).env_remove("VELLUM_LIB").env_remove("LD_PRELOAD");
    command
}

fn output(arguments: &[&str]) -> Output {
    gc_stat(arguments).output().expect("vellum starts")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&out_of_success(output)).expect("JSON")
}

#[test]
fn running_process_is_sampled() {
    let Some(program) = linked("collections.c") else { return };
    let mut running = Waiting::start(&program, 3);
    let pid = running.child.pid();
    let first = json(&output(&["--json", "-", &pid]));
    assert_eq!(first["schema"], "vellum.gc-stat/1");
    assert_eq!(first["pid"].as_u64(), Some(u64::from(running.child.0.id())));
    let get = |seen: &Value, field: &str| seen["total"][field].as_u64().expect("a number");
    let collections = get(&first, "collections");
    assert!(collections >= 3, "{first}");
    assert!(get(&first, "live_bytes") >= 1 << 20, "{first}");
    assert!(get(&first, "heap_bytes") >= get(&first, "live_bytes"));
    assert!(get(&first, "pause_ns") >= get(&first, "longest_ns") && get(&first, "longest_ns") > 0);
    let histogram = first["total"]["histogram"].as_array().expect("a list");
    assert_eq!(histogram.iter().filter_map(Value::as_u64).sum::<u64>(), get(&first, "pauses"));

    running.again();
    let second = json(&output(&["--json", "-", &pid]));
    assert_eq!(get(&second, "collections"), collections + 3);

    has(&out_of_success(&output(&[&pid])), &["collections", "pauses", "roots", "alive", "pauses by length"]);
    running.end();
    assert!(said(&output(&[&pid])).contains("there is no process"));
}

#[test]
fn rows_are_shown_at_intervals() {
    let place = tempfile::tempdir().expect("a folder");
    let Some(program) = linked("collections.c") else { return };
    let running = Waiting::start(&program, 1);
    let pid = running.child.pid();
    let rows = out_of_success(&output(&["--interval", "5ms", "-n", "3", &pid]));
    assert_eq!(rows.lines().count(), 4, "a head and three rows: {rows}");
    assert!(rows.lines().next().is_some_and(|head| head.contains("collections")), "{rows}");
    // As JSON, which also has the sample before the first row.
    let file = place.path().join("seen.json");
    exits(0, output(&["--interval", "5ms", "-n", "3", "--json", text(&file), &pid]));
    let seen = report(&file);
    let rows = seen["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4, "{seen}");
    let of = |row: &Value| row["collections"].as_u64().expect("a number");
    assert!(rows.windows(2).all(|two| of(&two[0]) <= of(&two[1])), "{seen}");
    assert_eq!(seen["total"]["collections"], rows[3]["collections"]);
}

/// The process ends while it is sampled: the rows until then are shown, and the command succeeds.
#[test]
fn process_that_ends_during_sampling_is_no_failure() {
    let Some(program) = linked("collections.c") else { return };
    let mut running = Waiting::start(&program, 1);
    let mut looking = gc_stat(&["--interval", "1ms", &running.child.pid()]);
    let mut looking = looking.stdout(Stdio::piped()).spawn().expect("vellum starts");
    let mut rows = BufReader::new(looking.stdout.take().expect("a pipe")).lines();
    let mut row = || rows.next().expect("a row").expect("text");
    assert!(row().contains("collections"));
    row();
    running.again();
    running.end();
    // Drained, as one row per millisecond would fill the pipe.
    rows.for_each(drop);
    assert!(looking.wait().expect("it ends by itself").success());
}

#[test]
fn started_program_gets_a_summary() {
    let place = tempfile::tempdir().expect("a folder");
    let Some(program) = linked("collections.c") else { return };
    let library = runtime();
    let start = |options: &[&str], collections: &str| {
        let program = ["--", text(&program), collections];
        let mut started = gc_stat(&[&["--lib", text(&library)], options, &program].concat());
        started.stdin(Stdio::null()).output().expect("vellum starts")
    };
    let output = exits(7, start(&[], "5"));
    assert_eq!(output.stdout, b"done\n", "the program's output");
    has(&said(&output), &["collections", "pauses by length"]);

    let file = place.path().join("seen.json");
    assert_eq!(start(&["--json", text(&file), "--interval", "1ms"], "5").status.code(), Some(7));
    let seen = report(&file);
    assert!(seen["total"]["collections"].as_u64() >= Some(5), "{seen}");
    assert_eq!(seen["command"][1], "5");

    // A heap without collections is reported as a heap.
    let words = said(&start(&[], "0"));
    assert!(words.contains("alive") && !words.contains("no collector"), "{words}");
    let none = gc_stat(&["--lib", text(&library), "--", "true"]).output().expect("vellum starts");
    assert!(none.status.success() && said(&none).contains("no collector was used"), "{}", said(&none));
}

#[test]
fn processes_without_readable_counters_are_refused() {
    let own = std::process::id().to_string();
    let output = output(&[&own]);
    assert!(!output.status.success() && output.stdout.is_empty());
    has(&said(&output), &[&format!("process {own} has not loaded libvellum.so")]);
    let Some(output) = vellum_as_nobody(&["gc-stat", &own]) else { return };
    assert!(!output.status.success());
    has(&said(&output), &["cannot read", "run as root"]);
}
