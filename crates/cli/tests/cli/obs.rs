//! Tests of `vellum obs`: selected parts of observation files (saved timings), and their statistics.

use crate::common::{self, VELLUM, exits, files, out, refused, said, text};
use serde_json::Value;
use std::io::Read;
use std::process::{Command, Output, Stdio};

/// Three series, a summary, and an invalid line.
const FILE: &str = "\
BASE:1l:Observation::Time:us 486 402 431 9053
SORT:1l:Observation:arm=A:Time:ns 10 20 30 40
SORT:with:Observation:arm=A:Start:ns 100 200 300 400
SORT:with:Observation:arm=A:Cpu:ns 9 19 29 39
this is no line of observations
SORT:1l:Observation:arm=B:Time:ns 11 21 31 41
BASE:summary:Sample:n:Time:us 1000 486 402 9053 499
";

fn obs(words: &[&str]) -> Command {
    let mut command = Command::new(VELLUM);
    command.arg("obs").args(words);
    command
}

/// `vellum obs WORDS` with `input` on standard input.
fn piped(words: &[&str], input: &[u8]) -> Output {
    common::piped(&mut obs(words), input)
}

#[test]
fn grep_selects_by_name_and_label() {
    let all = piped(&["grep", "."], FILE.as_bytes());
    let expected: String = FILE.split_inclusive('\n').filter(|line| !line.starts_with("this")).collect();
    assert_eq!((out(&all), all.status.code()), (expected, Some(0)));
    let found = piped(&["grep", "^SORT$", "--label", "=A"], FILE.as_bytes());
    assert!(out(&found).lines().eq(FILE.lines().skip(1).take(3)), "{found:?}");
    let nothing = piped(&["grep", "NOTHING"], FILE.as_bytes());
    assert_eq!((out(&nothing), nothing.status.code()), (String::new(), Some(1)));
}

#[test]
fn cut_and_select_extract_parts() {
    let cut = piped(&["cut", "2,4-", "--label", "=A"], FILE.as_bytes());
    assert_eq!(
        out(&cut),
        "SORT:1l:Observation:arm=A:Time:ns 20 40\n\
         SORT:with:Observation:arm=A:Start:ns 200 400\n\
         SORT:with:Observation:arm=A:Cpu:ns 19 39\n"
    );
    let cpu = piped(&["cut", "--select", "Cpu", "-2"], FILE.as_bytes());
    assert!(out(&cpu).starts_with("SORT:1l:Observation:arm=A:Cpu:ns 9 19\n"), "{}", out(&cpu));
    for ranges in ["0", "5-2", "x"] {
        refused(&piped(&["cut", ranges], b""), "no range of observations");
    }
}

#[test]
fn filters_combine_by_pipes_and_by_options() {
    let first = piped(&["grep", "SORT"], FILE.as_bytes());
    let second = piped(&["cut", "1-2", "--label", "=B"], &first.stdout);
    assert_eq!(out(&second), "SORT:1l:Observation:arm=B:Time:ns 11 21\n");
}

#[test]
fn bad_line_is_reported_by_number_and_skipped_or_refused() {
    let (_place, [file]) = files(["x.obs"]);
    std::fs::write(&file, FILE).unwrap();
    let lenient = exits(0, obs(&["stat", text(&file)]).output().unwrap());
    let told = said(&lenient);
    assert!(told.contains("x.obs: line 5, column 1: ") && told.contains("1 line skipped"), "{told}");
    assert_eq!(out(&lenient).lines().count(), 4);
    refused(&obs(&["stat", "--strict", text(&file)]).output().unwrap(), "x.obs: line 5, column 1: ");
    let many: String = std::iter::repeat_n("wrong\n", 1000).collect();
    let many = exits(1, piped(&["stat"], many.as_bytes()));
    let told = said(&many);
    assert!(told.contains("1000 lines skipped") && told.lines().count() < 10, "{told}");
}

#[test]
fn stat_prints_lines_a_table_or_json() {
    let lines = piped(&["stat", "--grep", "SORT"], FILE.as_bytes());
    assert_eq!(
        out(&lines),
        "SORT:summary:Sample:arm=A:Time:ns 4 25 10 40 12.909944487358056\n\
         SORT:summary:Sample:arm=B:Time:ns 4 26 11 41 12.909944487358056\n"
    );
    let table = piped(&["stat", "--to", "table"], FILE.as_bytes());
    let table = out(&table);
    let head: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["name", "labels", "n", "mean", "min", "max", "std", "p10"]);
    assert!(table.contains("1,000") && table.contains("9.05 ms") && !table.contains('\x1b'), "{table}");
    assert_eq!(common::wide(&table), None, "{table}");
    let json = piped(&["stat", "--to", "json", "-o", "--grep", "BASE"], FILE.as_bytes());
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["schema"], &json["layers"]), (&"vellum.obs.stat/1".into(), &1.into()));
    assert_eq!((&json["rows"][0]["of"], &json["rows"][0]["unit"]), (&4.into(), &"us".into()));
    assert_eq!(json["rows"][1]["p10"], Value::Null, "a summary has no observations");
}

#[test]
fn lines_and_json_convert_both_ways() {
    let json = piped(&["grep", "--to", "json", "SORT"], FILE.as_bytes());
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["schema"], "vellum.observations/1");
    assert_eq!(value["series"][0]["observations"]["cpu_ns"][3], 39.0);
    let lines = piped(&["grep", "."], &json.stdout);
    assert!(out(&lines).lines().eq(FILE.lines().filter(|line| line.starts_with("SORT"))), "{lines:?}");
    let summaries = piped(&["grep", "--to", "json", "BASE"], FILE.as_bytes());
    assert!(said(&summaries).contains("summaries left out"), "{}", said(&summaries));
    refused(&piped(&["stat"], br#"{"schema": "vellum.run/1"}"#), "vellum.run/1");
}

#[test]
fn closed_pipe_ends_obs_silently() {
    let (_place, [file]) = files(["big.obs"]);
    let line = format!("X:1l:Observation::Time:ns{}\n", " 123".repeat(100_000));
    std::fs::write(&file, line.repeat(20)).unwrap();
    for words in [&["grep", "."][..], &["cut", "1-"], &["grep", "--to", "json", "."]] {
        let mut child = obs(words).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 10]).unwrap();
        drop(stdout);
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), said(&ended)), (Some(0), String::new()), "{words:?}");
    }
}

#[test]
fn unreadable_input_is_named() {
    refused(&obs(&["stat", "/no/such/file.obs"]).output().unwrap(), "cannot open /no/such/file.obs");
    exits(125, obs(&["stat", "/"]).output().unwrap());
    refused(&obs(&["grep", "("]).output().unwrap(), "unclosed group");
}

#[test]
fn explain_reports_causes_periods_and_missing_columns() {
    // Every 40th observation of 10 µs, 250 per second, lost the processor for a millisecond.
    let (mut starts, mut walls, mut switches, mut now) = (String::new(), String::new(), String::new(), 1u64);
    for place in 0..2000u64 {
        let away = place % 40 == 20;
        let wall = 100_000 + place % 7 + if away { 50_000 } else { 0 };
        starts += &format!(" {now}");
        walls += &format!(" {wall}");
        switches += if away { " 1" } else { " 0" };
        now += wall;
    }
    let file = format!(
        "X:1l:Observation::Time:ns{walls}\nX:with:Observation::Start:ns{starts}\n\
         X:with:Observation::Involuntary:n{switches}\nPLAIN:1l:Observation::Time:us 1 1 1 1 9\n"
    );
    let told = piped(&["explain"], file.as_bytes());
    let text = out(&told);
    assert_eq!(told.status.code(), Some(0), "{}", said(&told));
    assert!(text.contains("preemption") && text.contains("switches"), "{text}");
    assert!(text.contains("only times were recorded") && text.contains("without starts"), "{text}");
    let json = piped(&["explain", "--json", "--grep", "^X$"], file.as_bytes());
    let value: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(value["schema"], "vellum.obs.explain/1");
    let [series] = value["series"].as_array().unwrap().as_slice() else { panic!("{value}") };
    assert_eq!((&series["n"], &series["losses"]["causes"][0]["cause"]), (&2000.into(), &"preemption".into()));
    assert!((series["beats"]["found"][0]["hz"].as_f64().unwrap() - 246.9).abs() < 1.0, "{value}");
    let nothing = piped(&["explain"], b"");
    assert_eq!((nothing.status.code(), nothing.stdout.is_empty()), (Some(1), true));
}
