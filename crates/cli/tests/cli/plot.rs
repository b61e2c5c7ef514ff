//! Tests of `vellum plot`: pictures in the terminal and in files.

use crate::common::{VELLUM, files, out_of_success as out, refused, text};
use std::path::Path;
use std::process::{Command, Output};

/// Two series with two far outliers each; the values of the second are one larger.
fn observations(folder: &Path) -> std::path::PathBuf {
    let value = |i: usize| 300 + i * 7 % 50 + if i == 70 || i == 130 { 9000 } else { 0 };
    let line = |name: &str, more: usize| {
        let values: String = (0..200).map(|i| format!(" {}", value(i) + more)).collect();
        format!("{name}:1l:Observation::Time:us{values}\n")
    };
    let path = folder.join("x.obs");
    std::fs::write(&path, line("BASE", 0) + &line("TWIN", 10)).unwrap();
    path
}

fn plot(words: &[&str]) -> Output {
    Command::new(VELLUM).arg("plot").args(words).env("TERM", "xterm").output().expect("vellum starts")
}

#[test]
fn every_kind_of_plot_fits_the_requested_size() {
    let place = tempfile::tempdir().unwrap();
    let file = observations(place.path());
    for kind in ["order", "histogram", "ecdf", "pairs"] {
        let text = out(&plot(&[text(&file), "-p", kind, "--width", "50", "--height", "20"]));
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{kind}:\n{text}");
        assert!(text.lines().count() <= 20 && !text.contains('\x1b'), "{kind}:\n{text}");
    }
}

#[test]
fn svg_goes_to_a_file_and_not_to_the_terminal() {
    let place = tempfile::tempdir().unwrap();
    let file = observations(place.path());
    let svg = place.path().join("x.svg");
    let title = "a <title> & more";
    let drawn = plot(&[text(&file), "-oo", "-p", "histogram", "-z", "--svg", text(&svg), "--title", title]);
    assert_eq!(out(&drawn), "");
    let picture = std::fs::read_to_string(&svg).unwrap();
    let document = roxmltree::Document::parse(&picture).expect("the picture is XML");
    let words: String = document.descendants().filter_map(|node| node.text()).collect();
    assert!(words.contains(title) && words.contains("Time (µs)"), "{words}");
    assert!(document.descendants().filter(|node| node.has_tag_name("rect")).count() > 3);
    let to_stdout = plot(&[text(&file), "--svg", "-"]);
    assert!(out(&to_stdout).starts_with("<svg"));
}

#[test]
fn colour_option_decides_on_colour() {
    let place = tempfile::tempdir().unwrap();
    let file = observations(place.path());
    assert!(out(&plot(&[text(&file), "--colour", "always"])).contains("\x1b["));
    assert!(!out(&plot(&[text(&file), "--colour", "never"])).contains("\x1b["));
}

#[test]
fn causes_are_drawn_as_letters() {
    let (_place, [path]) = files(["rich.obs"]);
    let of = |make: &dyn Fn(usize) -> u64| (0..100).map(|i| format!(" {}", make(i))).collect::<String>();
    let wall = |i: usize| 1000 + i as u64 % 3 + if i == 50 { 4_000_000 } else { 0 };
    let lines = [
        format!("X:1l:Observation::Time:ns{}", of(&wall)),
        format!("X:with:Observation::Start:ns{}", of(&|i| 1 + 10_000 * i as u64)),
        format!("X:with:Observation::Cpu:ns{}", of(&|_| 900)),
        format!("X:with:Observation::Involuntary:n{}", of(&|i| u64::from(i == 50))),
    ];
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    assert!(out(&plot(&[text(&path)])).contains("p preemption 1"));
    assert!(!out(&plot(&[text(&path), "--no-causes"])).contains("preemption"));
}

#[test]
fn undrawable_input_is_an_error_with_a_remedy() {
    let place = tempfile::tempdir().unwrap();
    let file = observations(place.path());
    let many: String = (0..9).map(|i| format!("S{i}:1l:Observation::Time:us 1 2 3\n")).collect();
    let (crowd, summary) = (place.path().join("many.obs"), place.path().join("summary.obs"));
    std::fs::write(&crowd, many).unwrap();
    std::fs::write(&summary, "BASE:summary:Sample:n:Time:us 1000 486 402 9053 499\n").unwrap();
    for (words, message) in [
        (&[text(&file), "--grep", "NONE"][..], "no entry of the input has that name"),
        (&[text(&crowd)], "9 series do not fit"),
        (&[text(&summary)], "only summaries"),
        (&[text(&file), "--grep", "BASE", "-p", "pairs"], "pairs need two series"),
        (&["/no/such/file"], "cannot open /no/such/file"),
        (&[text(&file), "--svg", "/no/such/folder/x.svg"], "/no/such/folder/x.svg"),
        (&[text(&file), "--bin", "0"], "above zero"),
    ] {
        let ended = plot(words);
        refused(&ended, message);
        assert!(ended.stdout.is_empty());
    }
}
