//! Tests of `vellum bench` on real programs and on Vellum's own operations.
//!
//! Only one test judges timings: a program that does forty times the work of another must take several times
//! as long.

use crate::common::{VELLUM, exits, files, has, out, refused, report, said, text, until, vellum};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A loop that compilers cannot remove. The arguments are the number of iterations and the exit status.
const LOOP: &str = "
#include <stdlib.h>
int main(int argc, char **argv) {
    volatile unsigned long sum = 0;
    for (unsigned long turn = atol(argv[1]); turn > 0; turn--) sum += turn;
    return argc > 2 ? atoi(argv[2]) : 0;
}";

pub(crate) fn bench(options: &[&str], words: &[&str]) -> Output {
    let mut command = Command::new(VELLUM);
    command.arg("bench").args(options);
    if !words.is_empty() {
        command.arg("--").args(words);
    }
    command.output().expect("vellum starts")
}

/// The loop, compiled, in a separate folder.
fn program() -> Option<(tempfile::TempDir, PathBuf)> {
    let place = tempfile::tempdir().unwrap();
    let program = crate::common::program("cc", &["-O1"], LOOP)?;
    Some((place, program))
}

/// Iterations that take about a millisecond. Forty times as many always take several times as long.
const ONCE: &str = "1000000";
const FORTYFOLD: &str = "40000000";

#[test]
fn fortyfold_work_is_detected_and_fails_the_gate() {
    let Some((place, program)) = program() else { return };
    let program = text(&program);
    let json = place.path().join("r.json");
    let words = [program, ONCE, "--vs", program, FORTYFOLD];
    let options = ["--rounds", "12", "--seed", "7", "--fail-above", "10%", "--json", text(&json)];
    let ended = exits(1, bench(&options, &words));
    let lines: Vec<String> = said(&ended).lines().map(str::to_owned).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("error: slower than allowed: "), "{lines:?}");
    let shown = out(&ended);
    let unwrapped = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    has(
        &unwrapped,
        &["B against A", "A against A", "12 rounds", "seed 7", "order", ": shown (CPU time)", "failed: +"],
    );
    // The first two lines are the commands, however long they are.
    assert!(shown.lines().skip(2).all(|line| line.chars().count() <= 80), "{shown}");

    let report = report(&json);
    assert_eq!((&report["schema"], &report["kind"]), (&"vellum.bench/1".into(), &"versus".into()));
    let cpu = &report["versus"][0];
    assert_eq!((&cpu["metric"], &cpu["direction"]), (&"cpu".into(), &"more".into()));
    let ratio = cpu["comparison"]["headline"]["ratio"]["estimate"].as_f64().unwrap();
    assert!((4.0..100.0).contains(&ratio), "{ratio}, seed 7");
    assert!(cpu["comparison"]["headline"]["control"]["low"].is_number());
    assert_eq!(report["gates"][0]["gate"]["outcome"], "failed");
    let series = report["series"].as_array().unwrap();
    assert_eq!(series.len(), 3);
    assert!(series.iter().all(|one| one["observations"]["value"].as_array().unwrap().len() == 12));

    let allowed = exits(0, bench(&["--rounds", "12", "--seed", "7", "--fail-above", "10000%", "-q"], &words));
    let quiet = out(&allowed);
    assert!(quiet.contains("times") && quiet.contains("passed"), "{quiet}");
    assert!(!quiet.contains("absolute") && said(&allowed).is_empty(), "{quiet}");
}

#[test]
fn single_program_is_described_and_its_observations_saved() {
    let Some((place, program)) = program() else { return };
    let file = |name: &str| place.path().join(name);
    let (lines, json) = (file("x.obs"), file("x.json"));
    let options = ["--rounds", "20", "--name", "loop", "--out", text(&lines), "--json", text(&json)];
    let ended = exits(0, bench(&options, &[text(&program), ONCE]));
    let shown = out(&ended);
    has(
        &shown,
        &["CPU", "wall", "p10", "layers of outliers", "peak resident", "loop takes ", "nothing disturbs it"],
    );
    let report = report(&json);
    assert_eq!((&report["kind"], &report["subjects"][0]["stat"]["n"]), (&"program".into(), &20.into()));
    let stat = vellum(["obs", "stat", "--select", "Cpu", text(&lines)]);
    assert!(out(&stat).starts_with("loop:summary:Sample::Cpu:ns 20 "), "{}", out(&stat));
    exits(0, vellum(["plot", text(&lines), "-p", "ecdf"]));
}

#[test]
fn missing_program_exits_127_and_unexecutable_one_126() {
    for words in [&["no-such-program-here"][..], &["true", "--vs", "no-such-program-here"]] {
        let ended = bench(&["--rounds", "1"], words);
        assert_eq!(ended.status.code(), Some(127), "{words:?}");
        assert_eq!(said(&ended), "error: no-such-program-here: not found\n");
    }
    exits(126, bench(&["--rounds", "1"], &["/etc/passwd"]));
}

#[test]
fn failing_program_ends_the_benchmark_unless_ignored() {
    let Some((_place, program)) = program() else { return };
    let program = text(&program);
    let failing = [program, "1000", "--vs", program, "1000", "3"];
    let ended = bench(&["--rounds", "2"], &failing);
    refused(&ended, "exited with status 3");
    assert!(out(&ended).is_empty());
    let ignoring = exits(0, bench(&["--rounds", "2", "-i", "--metric", "wall"], &failing));
    assert!(out(&ignoring).contains("failed in 2 of 2 runs"), "{}", out(&ignoring));
}

#[test]
fn output_equal_rejects_differing_outputs() {
    refused(
        &bench(&["--rounds", "2", "--output", "equal"], &["echo", "one", "--vs", "echo", "two"]),
        "wrote something else",
    );
}

#[test]
fn suite_prints_its_base_and_every_case() {
    let (_place, [json]) = files(["r.json"]);
    let options =
        ["--suite", "memory", "--rounds", "20", "--warm-up", "1", "--attribute", "--json", text(&json)];
    let ended = exits(0, bench(&options, &[]));
    let shown = out(&ended);
    let base = shown.lines().nth(1).unwrap_or_default();
    assert!(base.trim_start().starts_with("BASE ") && base.contains("mean"), "{shown}");
    has(
        &shown,
        &["operation", "n", "mean", "min", "max", "std", "p10", "small 64 B", "what outliers lost time to"],
    );
    let report = report(&json);
    assert_eq!((&report["kind"], &report["how"]["suite"]), (&"suite".into(), &"memory".into()));
    assert!(report["base"]["step"].as_f64().unwrap() > 0.0);
    assert_eq!(report["series"][0]["name"], "BASE");
    assert_eq!(report["series"].as_array().unwrap().len(), report["subjects"].as_array().unwrap().len() + 1);
    refused(&bench(&["--suite", "memory", "--only", "nonesuch"], &[]), "small 64 B");
}

#[test]
fn contradictory_options_are_refused_before_programs_run() {
    let (_place, [mark]) = files(["ran"]);
    let touch = ["touch", text(&mark)];
    let (setup, many) = (format!("touch {}", text(&mark)), [","; 64].concat());
    for (options, words, message) in [
        (&["--fail-above", "2%"][..], &touch[..], "--fail-above needs something"),
        (&["--suite", "memory", "--fail-above", "2%"], &[], "cannot be used with"),
        (&["--baseline", "x.json"], &touch, "there is no option \"--baseline\""),
        (&["--json", "/no/such/folder/r.json"], &touch, "/no/such/folder/r.json"),
        (&[], &["--vs", "true"], "no program before"),
        (&[], &["touch", text(&mark), "--vs"], "no program behind"),
        (&[], &["touch", text(&mark), "--vs", "true", "--vs"], "no program behind"),
        (&["--setup", &setup, "--fail-above", "2%"], &["true"], "--fail-above needs something"),
        (&["-L", "n", &many], &["touch", text(&mark), "{n}"], "65 programs are too many"),
        (&["--time", "3"], &touch, "unit"),
        (&["--clock", "sundial"], &touch, "sundial"),
        (&["--suite", "nonesuch"], &[], "nonesuch"),
        (&[], &[], "COMMAND"),
    ] {
        let ended = bench(options, words);
        refused(&ended, message);
        assert!(!mark.exists(), "{options:?} ran something");
    }
}

#[test]
fn json_on_standard_output_moves_the_report_to_standard_error() {
    let ended = bench(&["--rounds", "3", "--json", "-"], &["true"]);
    let value: Value = serde_json::from_slice(&ended.stdout).expect("nothing but JSON");
    assert_eq!(value["schema"], "vellum.bench/1");
    assert!(said(&ended).contains("wall"), "{}", said(&ended));
}

#[test]
fn files_are_written_even_if_others_fail() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join(name);
    let (lines, json) = (file("x.obs"), file("x.json"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(VELLUM);
    command.args(["bench", "--rounds", "3", "--markdown", "/dev/full", "--out", text(&lines)]);
    refused(&command.args(["--json", text(&json), "--", "true"]).stdout(full).output().unwrap(), "/dev/full");
    assert!(std::fs::read_to_string(&lines).unwrap().contains("Observation"));
    assert_eq!(report(&json)["kind"], "program");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2, "no litter");
    refused(&bench(&["--out", "-", "--json", "-"], &["true"]), "only one of");
}

#[test]
fn unwritable_standard_error_does_not_change_the_status() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    exits(125, Command::new(VELLUM).args(["plot", "/no/such.obs"]).stderr(full()).output().unwrap());
}

#[test]
fn stop_signal_reports_complete_rounds_and_leaves_no_process() {
    let (_place, [lines, pids]) = files(["x.obs", "pids"]);
    // Each process writes its number; the twelfth process sleeps until it is killed.
    let script = format!("echo $$ >> {0}; [ $(wc -l < {0}) -lt 12 ] || exec sleep 1000", text(&pids));
    let mut command = Command::new(VELLUM);
    command.args(["bench", "--time", "1000s", "--warm-up", "0", "--out", text(&lines)]);
    command.args(["--", "sh", "-c", &script]).stdout(std::process::Stdio::piped());
    let bench = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let started = || std::fs::read_to_string(&pids).unwrap_or_default();
    until("all have started", || started().ends_with('\n') && started().lines().count() >= 12);
    assert!(Command::new("kill").args(["-TERM", &bench.id().to_string()]).status().unwrap().success());
    let ended = exits(128 + 15, bench.wait_with_output().unwrap());
    assert!(out(&ended).contains("stopped early"), "{}", out(&ended));
    assert!(std::fs::read_to_string(&lines).unwrap().contains("Observation"));
    let started = started();
    let last = started.lines().last().unwrap();
    assert!(!Path::new("/proc").join(last).exists(), "the program goes on alone");
}

#[test]
fn each_parameter_value_makes_a_program() {
    let Some((place, program)) = program() else { return };
    let [json, xml, page, log] = ["r.json", "r.xml", "r.md", "log"].map(|name| place.path().join(name));
    let line = |step: &str| format!("echo {step} {{turns}} >> {}", text(&log));
    let steps = ["setup", "prepare", "conclude", "cleanup"].map(line);
    let mut options = vec!["--rounds", "6", "--no-order-check", "--fail-above", "50%", "-L", "turns"];
    let values = format!("{ONCE},{FORTYFOLD},{ONCE}");
    options.extend([&values, "--json", text(&json), "--junit", text(&xml), "--markdown", text(&page)]);
    for (name, line) in ["--setup", "--prepare", "--conclude", "--cleanup"].into_iter().zip(&steps) {
        options.extend([name, line]);
    }
    exits(1, bench(&options, &[text(&program), "{turns}"]));
    let found = report(&json);
    let arms: Vec<&str> =
        found["versus"].as_array().unwrap().iter().map(|row| row["arm"].as_str().unwrap()).collect();
    assert_eq!(arms, ["B", "C", "B", "C"]);
    assert_eq!(found["versus"][0]["direction"], "more");
    assert_eq!(found["series"].as_array().unwrap().len(), 4);

    // A warm-up and six rounds, with the first program twice in each round.
    let log = std::fs::read_to_string(log).unwrap();
    let times = |line: String| log.lines().filter(|one| **one == line).count();
    let small = |step: &str| times(format!("{step} {ONCE}"));
    let large = |step: &str| times(format!("{step} {FORTYFOLD}"));
    assert_eq!((small("setup"), large("setup"), small("cleanup"), large("cleanup")), (2, 1, 2, 1));
    assert_eq!((small("prepare"), large("prepare")), (2 + 6 * 3, 1 + 6));
    assert_eq!((small("conclude"), large("conclude")), (2 + 6 * 3, 1 + 6));

    let xml = std::fs::read_to_string(xml).unwrap();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
    assert_eq!(suite.attribute("tests"), Some("2"));
    let failures = document.descendants().filter(|node| node.has_tag_name("failure")).count();
    assert!(failures >= 1 && suite.attribute("failures") == Some(failures.to_string().as_str()), "{xml}");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| CPU, ")).count();
    assert!(rows == 2 && page.contains("| --- |") && page.contains(": shown (CPU time)."), "{page}");
}

#[test]
fn failing_steps_are_named_and_cleaned_up() {
    let Some((place, program)) = program() else { return };
    let left = place.path().join("left");
    let cleanup = format!("rm {}", text(&left));
    let setup = format!("touch {}; echo no room >&2; exit 3", text(&left));
    let ended = exits(125, bench(&["--setup", &setup, "--cleanup", &cleanup], &[text(&program), ONCE]));
    assert!(said(&ended).contains("setup (touch") && said(&ended).contains("status 3 and printed: no room"));
    assert!(!left.exists(), "the cleanup ran");
    for (options, why) in [
        (&["-L", "n", "1,2"][..], "write {NAME} where its values belong"),
        (&["--until", "0"], "such as 1%"),
        (&["--build", "make"], "--vs-ref"),
    ] {
        let ended = bench(options, &[text(&program), ONCE]);
        assert!(!ended.status.success() && said(&ended).contains(why), "{options:?}: {}", said(&ended));
    }
}

#[test]
fn other_revision_is_built_and_compared() {
    let Some((place, program)) = program() else { return };
    let git = |words: &[&str]| {
        let ran = Command::new("git").current_dir(place.path()).args(words).output();
        ran.ok().filter(|ran| ran.status.success()).is_some()
    };
    if !git(&["init", "--quiet", "--initial-branch=main", "."]) {
        return vellum_skip::skip("there is no git");
    }
    // The older revision does the work ten times.
    let script = |times: u32| {
        let (program, source) = (text(&program), place.path().join("source"));
        let turns = format!("i=0; while [ $i -lt {times} ]; do {program} $1; i=$((i+1)); done");
        std::fs::write(source, format!("#!/bin/sh\n{turns}\n")).unwrap();
    };
    script(10);
    let person = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
    assert!(git(&["add", "source"]));
    assert!(git(&[&person[..], &["commit", "--quiet", "-m", "one"]].concat()));
    script(1);
    let build = "cp source prog && chmod +x prog";
    let compare = |options: &[&str]| {
        let options = [&["--rounds", "6", "--no-order-check"], options].concat();
        Command::new(VELLUM)
            .current_dir(place.path())
            .args([&["bench"], &options[..], &["--", "./prog", ONCE]].concat())
            .output()
            .unwrap()
    };
    exits(127, compare(&["--vs-ref", "main"]));
    let built = Command::new("sh").current_dir(place.path()).args(["-c", build]).status().unwrap();
    assert!(built.success());
    let ended = exits(0, compare(&["--vs-ref", "main", "--build", build, "--json", "r.json"]));
    let found = report(&place.path().join("r.json"));
    assert_eq!(found["versus"][0]["direction"], "less", "{}", out(&ended));
    assert!(found["programs"][0]["name"].as_str().unwrap().ends_with(" of main"));
    let unknown = compare(&["--vs-ref", "nosuch"]);
    assert!(said(&unknown).contains("no such commit"), "{}", said(&unknown));
    let failing = compare(&["--vs-ref", "main", "--build", "false"]);
    assert!(said(&failing).contains("\"false\" in"), "{}", said(&failing));
    let trees = Command::new("git").current_dir(place.path()).args(["worktree", "list"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&trees.stdout).lines().count(), 1, "the work tree is removed");
}
