//! Tests of `vellum trace`: working-set curves from recorded memory references.

use crate::common::{VELLUM, exits, files, has, out_of_success as out, refused, said, text};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The numbers of pages that the program uses all the time, and of pages that it uses rarely.
const HOT: u64 = 20;
const COLD: u64 = 80;
const ROUNDS: u64 = 40;

/// A program in lackey's text format: an instruction and a load each. It uses the hot pages 50 times in turn,
/// then each cold page once.
fn known(folder: &Path) -> PathBuf {
    let mut lines = String::from("==7== Lackey, an example Valgrind tool\n");
    for _ in 0..ROUNDS {
        let pages = (0..50 * HOT).map(|n| n % HOT).chain((0..COLD).map(|n| HOT + n));
        for page in pages {
            // Code and data are on the same page, so that there are no other pages.
            writeln!(lines, "I  {:08x},4\n L {:08x},8", page << 12, (page << 12) + 64).unwrap();
        }
    }
    let path = folder.join("known.trace");
    std::fs::write(&path, lines).unwrap();
    path
}

fn trace(words: &[&str]) -> Output {
    Command::new(VELLUM).arg("trace").args(words).env("TERM", "xterm").output().expect("vellum starts")
}

fn json(words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--json", "-"]).collect();
    serde_json::from_str(&out(&trace(&words))).expect("nothing but JSON")
}

#[test]
fn known_trace_gives_known_figures() {
    let place = tempfile::tempdir().unwrap();
    let file = known(place.path());
    // A fault costs 1 µs, a thousand instructions: only a limit of all pages is below the cap.
    let value = json(&[text(&file), "--delay", "1us"]);
    assert_eq!((&value["schema"], &value["format"]), (&"vellum.trace/1".into(), &"lackey".into()));
    let instructions = ROUNDS * (50 * HOT + COLD);
    assert_eq!(["ticks", "references"].map(|of| value[of].as_u64()), [1, 2].map(|n| Some(n * instructions)));
    assert_eq!((value["pages"].as_u64(), value["delay_ticks"].as_f64()), (Some(HOT + COLD), Some(1000.0)));
    let give = value["advice"]["pages"].as_f64().unwrap();
    assert!((95.0..=101.0).contains(&give), "{value}");
    // With this cap the hot pages suffice: 80 faults in 1,080 instructions, at a tick each, are 7 %.
    let value = json(&[text(&file), "--delay", "1ns", "--cap", "10%"]);
    let give = value["advice"]["pages"].as_f64().unwrap();
    assert!(give < 45.0, "{value}");
}

#[test]
fn text_and_plot_fit_the_columns_and_state_assumptions() {
    let place = tempfile::tempdir().unwrap();
    let file = known(place.path());
    let text_of = out(&trace(&[text(&file), "--width", "72", "--height", "14"]));
    has(
        &text_of,
        &["lackey", "100 of 4.00 KiB", "a fault", "--rate", "give", "limit", "window (instructions)"],
    );
    // Lines with the path may be long.
    let lines = text_of.lines().filter(|line| !line.contains("known.trace"));
    assert!(lines.clone().all(|line| line.chars().count() <= 80), "{text_of}");
    assert!(!text_of.contains('\x1b'), "colour where there is no terminal");
}

#[test]
fn saved_page_trace_gives_equal_results() {
    let place = tempfile::tempdir().unwrap();
    let file = known(place.path());
    let saved = place.path().join("known.pages");
    let mut first = json(&[text(&file), "--save", text(&saved)]);
    assert!(saved.metadata().unwrap().len() * 4 < file.metadata().unwrap().len());
    let mut again = json(&[text(&saved)]);
    for field in ["file", "format"] {
        first[field].take();
        again[field].take();
    }
    assert_eq!(first, again);
}

#[test]
fn standard_input_and_svg() {
    let (place, [svg]) = files(["x.svg"]);
    let file = std::fs::File::open(known(place.path())).unwrap();
    let ended = Command::new(VELLUM).args(["trace", "-", "--svg", text(&svg)]).stdin(file).output().unwrap();
    let text_of = out(&ended);
    assert!(text_of.contains("standard input") && !text_of.contains("└"), "no plot beside it:\n{text_of}");
    let svg = std::fs::read_to_string(&svg).unwrap();
    assert!(svg.starts_with("<svg") && !svg.contains('…'), "{svg}");
}

#[test]
fn bad_lines_are_reported_and_skipped_or_refused() {
    let place = tempfile::tempdir().unwrap();
    let file = known(place.path());
    let mut more = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    for _ in 0..9 {
        writeln!(more, "what is this").unwrap();
    }
    let ended = trace(&[text(&file), "--json", "-"]);
    let (value, said_of) = (serde_json::from_str::<Value>(&out(&ended)).unwrap(), said(&ended));
    assert_eq!(value["bad"].as_u64(), Some(9));
    assert!(said_of.contains("line 86402") && said_of.contains("9 lines in all"), "{said_of}");
    assert_eq!(said_of.matches("is skipped").count(), 5, "{said_of}");
    refused(&trace(&[text(&file), "--strict"]), "line 86402");
}

#[test]
fn truncated_page_trace_counts_and_damaged_one_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (file, saved) = (known(place.path()), place.path().join("known.pages"));
    out(&trace(&[text(&file), "--save", text(&saved)]));
    let whole = std::fs::read(&saved).unwrap();
    // The last record takes two bytes; the last byte is cut off.
    std::fs::write(&saved, &whole[..whole.len() - 1]).unwrap();
    let ended = trace(&[text(&saved), "--json", "-"]);
    let value: Value = serde_json::from_str(&out(&ended)).unwrap();
    assert_eq!(value["references"].as_u64(), Some(2 * ROUNDS * (50 * HOT + COLD) - 1));
    assert!(said(&ended).contains("ends early"), "{}", said(&ended));
    let damaged: Vec<u8> =
        whole.iter().enumerate().map(|(at, byte)| if at > 500 { 0xff } else { *byte }).collect();
    std::fs::write(&saved, damaged).unwrap();
    let ended = exits(125, trace(&[text(&saved)]));
    assert!(said(&ended).contains("record") && ended.stdout.is_empty(), "{}", said(&ended));
}

#[test]
fn invalid_trace_is_refused_with_a_remedy() {
    let (_place, [file]) = files(["empty"]);
    std::fs::write(&file, "").unwrap();
    refused(&trace(&[text(&file)]), "valgrind --tool=lackey");
    refused(&trace(&["/no/such/trace"]), "/no/such/trace");
    for words in [&["--delay", "5"][..], &["--page-size", "5"], &["--cap", "x"], &["--rate", "0"]] {
        assert_eq!(trace(&[&[text(&file)], words].concat()).status.code(), Some(125), "{words:?}");
    }
    let ended = trace(&[text(&file), "--json", "/no/such/directory/x.json"]);
    assert!(said(&ended).contains("/no/such/directory"), "{}", said(&ended));
}
