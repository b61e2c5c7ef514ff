//! Tests of `vellum bench --metric instructions`: counts by valgrind (the same on every machine), and the
//! message on processors without a counter of instructions.

use crate::common::{VELLUM, exits, has, out, refused, report, said, text, vellum};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A loop with the macro's number of iterations, of five instructions each.
const LOOP: &str = "
int main(void) {
    volatile unsigned long sum = 0;
    for (unsigned long turn = TURNS; turn > 0; turn--) sum += turn;
    return 0;
}";

/// Iterations of about 4 ms, and 1 % more.
const TURNS: u32 = 2_000_000;
const MORE_TURNS: u32 = 2_020_000;

/// The loop with this number of iterations, compiled in a separate folder.
fn program(turns: u32) -> Option<(tempfile::TempDir, PathBuf)> {
    let place = tempfile::tempdir().unwrap();
    let program = crate::common::program("cc", &["-O1", &format!("-DTURNS={turns}")], LOOP)?;
    Some((place, program))
}

fn bench(options: &[&str], words: &[&str]) -> Output {
    crate::bench::bench(&[&["--metric", "instructions"], options].concat(), words)
}

fn there_is_valgrind() -> bool {
    let there = Command::new("valgrind").arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !there {
        vellum_skip::skip("there is no valgrind");
    }
    there
}

const BY_VALGRIND: [&str; 2] = ["--counter", "valgrind"];

#[test]
fn one_per_cent_more_instructions_are_detected_and_equal_counts_are_not() {
    let (Some((place, old)), Some((_other, new))) = (program(TURNS), program(MORE_TURNS)) else { return };
    if !there_is_valgrind() {
        return;
    }
    let file = |name: &str| place.path().join(name);
    let [json, page, xml, lines] = ["r.json", "r.md", "r.xml", "r.obs"].map(file);
    let mut options = BY_VALGRIND.to_vec();
    options.extend(["--fail-above", "0.5%", "--seed", "7"]);
    options.extend(["--json", text(&json), "--markdown", text(&page)]);
    options.extend(["--junit", text(&xml), "--out", text(&lines)]);
    let ended = exits(1, bench(&options, &[text(&old), "--vs", text(&new)]));
    assert!(said(&ended).starts_with("error: more instructions than allowed: "), "{}", said(&ended));
    let shown = out(&ended);
    let unwrapped = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    has(
        &unwrapped,
        &["instructions counted by valgrind", "% more instructions than", ": shown", "A against A"],
    );
    // Times and memory would include valgrind's, so they are missing.
    for part in ["CPU", "wall", "peak", "faults", "starting"] {
        assert!(!shown.contains(part), "{part} is there:\n{shown}");
    }
    // The first two lines are the commands, however long they are.
    assert!(shown.lines().skip(2).all(|line| line.chars().count() <= 80), "{shown}");

    let found = report(&json);
    let how = &found["how"];
    let named = ["metric", "unit", "counter"].map(|field| how[field].as_str().unwrap());
    assert_eq!(named, ["instructions", "instructions", "valgrind"]);
    // The fewest rounds, as nothing varies.
    assert_eq!(how["rounds"], 6, "{shown}");
    let versus = found["versus"].as_array().unwrap();
    assert_eq!((versus.len(), &versus[0]["metric"]), (1, &"instructions".into()));
    assert_eq!(versus[0]["direction"], "more");
    let ratio = versus[0]["comparison"]["headline"]["ratio"]["estimate"].as_f64().unwrap();
    assert!((1.0090..1.0101).contains(&ratio), "{ratio}");
    assert!(found["programs"].as_array().unwrap().iter().all(|one| one["peak_bytes"] == Value::Null));
    assert_eq!(found["series"][2]["unit"], "instructions");
    let counted = &found["subjects"][0];
    assert_eq!(counted["metric"], "instructions");
    // Five instructions per iteration, and the loader's.
    let mean = counted["stat"]["mean"].as_f64().unwrap();
    assert!((10.0e6..11.0e6).contains(&mean), "{mean}");

    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert!(read(&lines).contains("Instructions:instructions "), "{}", read(&lines));
    assert!(read(&page).contains("| instructions |") && read(&page).contains(": shown (instructions)."));
    assert!(read(&xml).contains("failures=\"1\"") && read(&xml).contains("(instructions)"), "{}", read(&xml));

    // The same program under a longer name, for which the loader needs more instructions.
    let again = place.path().join("the_same_program_under_a_longer_name");
    std::fs::copy(&old, &again).unwrap();
    let same = exits(0, bench(&[&BY_VALGRIND[..], &["-q"]].concat(), &[text(&old), "--vs", text(&again)]));
    assert!(out(&same).starts_with("no difference between "), "{}", out(&same));
}

#[test]
fn instructions_of_one_or_several_programs_are_counted() {
    let Some((_place, program)) = program(1000) else { return };
    if !there_is_valgrind() {
        return;
    }
    let program = text(&program);
    let rounds = [&BY_VALGRIND[..], &["--rounds", "1", "--warm-up", "0"]].concat();
    let three = exits(0, bench(&rounds, &[program, "--vs", program, "--vs", program]));
    let shown = out(&three);
    assert!(shown.contains("instr., B") && shown.contains("instr., C"), "{shown}");

    let alone = exits(0, bench(&[&rounds[..], &["--name", "loop"]].concat(), &[program]));
    assert!(out(&alone).contains("loop executes ") && !out(&alone).contains("peak"), "{}", out(&alone));
}

#[test]
fn missing_counter_error_names_the_alternative() {
    let ended = bench(&["--rounds", "6", "--json", "-"], &["true", "--vs", "true"]);
    if ended.status.success() {
        // This processor counts instructions, so times are shown too.
        let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(found["how"]["counter"], "hardware");
        let metrics = found["versus"].as_array().unwrap().iter().map(|row| row["metric"].as_str().unwrap());
        assert_eq!(metrics.collect::<Vec<_>>(), ["instructions", "cpu", "wall"]);
    } else {
        has(&said(&exits(125, ended)), &["perf_event_open: ", "--counter valgrind", "30 times"]);
    }
    let mut without = Command::new(VELLUM);
    without.args(["bench", "--metric", "instructions"]).args(BY_VALGRIND).args(["--", "/bin/true"]);
    let ended = without.env("PATH", "/no/such/folder").output().unwrap();
    refused(&ended, "valgrind: not found; install valgrind");
    for (metric, option, why) in [
        ("cpu", &["--counter", "valgrind"][..], "--counter is for --metric instructions"),
        ("instructions", &["--subtract-start"], "--subtract-start is for times"),
    ] {
        refused(&vellum([&["bench", "--metric", metric], option, &["true"]].concat()), why);
    }
}
