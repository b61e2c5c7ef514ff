//! `vellum gc-stat` on real processes: a running process, a program that it starts, a process that ends
//! during the watch, and processes without readable counters.

use crate::common::held::{is_built, runtime};
use crate::common::{self, VELLUM, has, report, said, text};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

/// Makes a list of 1 MiB, collects as often as its first argument gives, and prints a line. Each line of
/// input repeats this; the exit status is 7.
const PROGRAM: &str = include_str!("../heap/collections.c");

/// The program, linked with the library; `None`, with a skip, without a compiler or the library.
fn program() -> Option<PathBuf> {
    if !is_built() {
        return None;
    }
    let directory = text(runtime().parent().expect("a folder")).to_owned();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let flags = [
        include.to_owned(),
        "-Wl,--no-as-needed".to_owned(),
        format!("-L{directory}"),
        "-lvellum".to_owned(),
        format!("-Wl,-rpath,{directory}"),
    ];
    common::program("cc", &flags.each_ref().map(String::as_str), PROGRAM)
}

/// A running program that waits for a line of input.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(program: &Path, collections: u32) -> Running {
        let mut child = Command::new(program)
            .arg(collections.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let mut running = Running { child, input, output: BufReader::new(output) };
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

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn end(&mut self) {
        drop(self.input.take());
        assert_eq!(self.child.wait().expect("it ends").code(), Some(7));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn running_process_is_sampled() {
    let Some(program) = program() else { return };
    let mut running = Running::start(&program, 3);
    let pid = running.pid();
    let first = json(&output(&["--json", "-", &pid]));
    assert_eq!(first["schema"], "vellum.gc-stat/1");
    assert_eq!(first["pid"].as_u64(), Some(u64::from(running.child.id())));
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

    let words = output(&[&pid]);
    let words = String::from_utf8_lossy(&words.stdout).into_owned();
    has(&words, &["collections", "pauses", "roots", "alive", "pauses by length"]);
    running.end();
    assert!(said(&output(&[&pid])).contains("there is no process"));
}

#[test]
fn rows_are_shown_at_intervals() {
    let place = tempfile::tempdir().expect("a folder");
    let Some(program) = program() else { return };
    let running = Running::start(&program, 1);
    let rows = output(&["--interval", "5ms", "-n", "3", &running.pid()]);
    assert!(rows.status.success(), "{}", said(&rows));
    let rows = String::from_utf8_lossy(&rows.stdout).into_owned();
    assert_eq!(rows.lines().count(), 4, "a head and three rows: {rows}");
    assert!(rows.lines().next().is_some_and(|head| head.contains("collections")), "{rows}");
    // As JSON, which also has the sample before the first row.
    let file = place.path().join("seen.json");
    let seen = output(&["--interval", "5ms", "-n", "3", "--json", text(&file), &running.pid()]);
    assert!(seen.status.success(), "{}", said(&seen));
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
    let Some(program) = program() else { return };
    let mut running = Running::start(&program, 1);
    let mut looking = gc_stat(&["--interval", "1ms", &running.pid()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("vellum starts");
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
    let Some(program) = program() else { return };
    let library = runtime();
    let start = |options: &[&str], collections: &str| {
        let mut arguments = vec!["--lib", text(&library)];
        arguments.extend(options);
        arguments.extend(["--", text(&program), collections]);
        gc_stat(&arguments).stdin(Stdio::null()).output().expect("vellum starts")
    };
    let output = start(&[], "5");
    assert_eq!(output.status.code(), Some(7), "the program's status: {}", said(&output));
    assert_eq!(output.stdout, b"done\n", "the program's output");
    let words = said(&output);
    assert!(words.contains("collections") && words.contains("pauses by length"), "{words}");

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
    assert!(
        said(&output).contains(&format!("process {own} has not loaded libvellum.so")),
        "{}",
        said(&output)
    );
    // SAFETY: `geteuid` has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        vellum_skip::skip("only root can become another user");
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let copy = place.path().join("vellum");
    std::fs::copy(VELLUM, &copy).expect("a copy that another user may start");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).expect("its own folder");
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let output = Command::new(copy).args(["gc-stat", &own]).uid(NOBODY).gid(NOBODY).output();
    let output = output.expect("vellum starts");
    assert!(!output.status.success());
    assert!(said(&output).contains("cannot read") && said(&output).contains("run as root"), "{output:?}");
}
