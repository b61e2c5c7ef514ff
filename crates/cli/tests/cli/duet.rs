//! Tests of `vellum bench --order duet`, which runs both programs of a pair at once, on two processors.

use crate::bench::{FORTYFOLD, ONCE, bench, program, stopped_after};
use crate::common::{VELLUM, files, has, out, refused, report, said, text};
use std::process::{Command, Output, Stdio};

/// Runs a duet, unless there is only one processor.
fn duet(options: &[&str], words: &[&str]) -> Option<Output> {
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        vellum_skip::skip("there is one processor");
        return None;
    }
    Some(bench(&[&["--order", "duet"], options].concat(), words))
}

#[test]
fn fortyfold_work_is_detected_in_a_duet() {
    let Some((place, program)) = program() else { return };
    let program = text(&program);
    let (json, lines) = (place.path().join("r.json"), place.path().join("r.obs"));
    let options = ["--rounds", "12", "--seed", "7", "--json", text(&json), "--out", text(&lines)];
    let words = [program, ONCE, "--vs", program, FORTYFOLD, "--vs", program, ONCE];
    let Some(ended) = duet(&options, &words) else { return };
    assert_eq!(ended.status.code(), Some(0), "{}", said(&ended));
    let shown = out(&ended);
    let unwrapped = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    has(
        &unwrapped,
        &[
            "12 rounds of A beside A again, B and C, on processors ",
            "seed 7",
            "A against A",
            ": shown (CPU time)",
        ],
    );
    let found = report(&json);
    assert_eq!(found["how"]["order"], "duet");
    let processors = found["how"]["processors"].as_array().unwrap();
    assert!(processors.len() == 2 && processors[0] != processors[1], "{processors:?}");
    let versus = &found["versus"];
    assert_eq!((&versus[0]["arm"], &versus[0]["direction"]), (&"B".into(), &"more".into()));
    let ratio = |row: usize| versus[row]["comparison"]["headline"]["ratio"]["estimate"].as_f64().unwrap();
    assert!((4.0..100.0).contains(&ratio(0)) && ratio(1) < ratio(0), "{} {}, seed 7", ratio(0), ratio(1));
    assert!(std::fs::read_to_string(lines).unwrap().contains("order=duet"));
}

#[test]
fn unsupported_duet_options_are_refused_before_programs_run() {
    let (_place, [mark]) = files(["ran"]);
    let touch = ["touch", text(&mark), "--vs", "true"];
    for (options, words, why) in [
        (&[][..], &touch[..2], "add another one behind --vs"),
        (&["--metric", "instructions"], &touch, "--order duet is for times"),
        (&["--output", "equal"], &touch, "--order duet compares no outputs"),
    ] {
        let Some(ended) = duet(options, words) else { return };
        refused(&ended, why);
        assert!(!mark.exists(), "{options:?} ran something");
    }
    let Ok(alone) =
        Command::new("taskset").args(["-c", "0", VELLUM, "bench", "--order", "duet"]).args(touch).output()
    else {
        return vellum_skip::skip("there is no taskset");
    };
    if said(&alone).starts_with("taskset:") {
        return vellum_skip::skip("processor 0 is not ours");
    }
    refused(&alone, "needs two processors, and 1 is allowed");
    assert!(!mark.exists());
}

#[test]
fn stop_signal_ends_both_programs_of_a_pair() {
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        return vellum_skip::skip("there is one processor");
    }
    let (_place, [pids]) = files(["pids"]);
    let script = format!("echo $$ >> {}; exec sleep 1000", text(&pids));
    let mut command = Command::new(VELLUM);
    command.args(["bench", "--order", "duet", "--warm-up", "0", "--"]);
    command
        .args(["sh", "-c", &script, "--vs", "sh", "-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let bench = command.spawn().unwrap();
    let (both, ended) = stopped_after(2, &pids, bench);
    assert!(said(&ended).contains("stopped by signal 15"), "{}", said(&ended));
    for pid in both.lines() {
        assert!(!std::path::Path::new("/proc").join(pid).exists(), "{pid} goes on alone");
    }
}
