//! The command line of `vellum-papers`. Other tests run the experiments themselves.

use std::process::{Command, Output};

fn papers(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vellum-papers")).args(words).output().expect("the command starts")
}

#[test]
fn help_lists_papers_but_no_workers() {
    let help = String::from_utf8(papers(&["--help"]).stdout).expect("text");
    assert!(
        help.contains("douglas")
            && help.contains("bates")
            && help.contains("nishigaki")
            && help.contains("cooper")
            && !help.contains("work "),
        "{help}"
    );
    for source in ["douglas", "bates", "smith", "nishigaki", "cooper"] {
        let help = String::from_utf8(papers(&[source, "--help"]).stdout).expect("text");
        for word in ["--quick", "--json", "--svg", "--seed", "--only"] {
            assert!(help.contains(word), "{source}: {word} is missing:\n{help}");
        }
    }
}

#[test]
fn a_worker_prints_one_line_of_figures_and_fails_with_125() {
    let ended = papers(&["work", "block", "method=paged", "bytes=8192", "times=2"]);
    assert!(ended.status.success(), "{ended:?}");
    let value: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("a line of JSON");
    assert!(value["total_cycles"].is_number(), "{value}");
    for words in [&["work", "nonesuch"][..], &["work", "block", "method=none", "bytes=1", "times=1"]] {
        let ended = papers(words);
        assert_eq!(ended.status.code(), Some(125), "{words:?}");
        assert!(!ended.stderr.is_empty() && ended.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn bates_writes_complete_json_and_lines() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let lines = place.path().join("b.obs");
    let path = lines.to_str().expect("a plain path");
    let ended = papers(&["bates", "--quick", "--only", "builtin", "--json", "-", "--out", path]);
    assert!(ended.status.success(), "{ended:?}");
    let value: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("nothing but JSON");
    assert_eq!(value["schema"], "vellum.papers.bates/1");
    let names = value["experiments"].as_array().expect("a list").iter().map(|one| &one["name"]);
    assert_eq!(Vec::from_iter(names), ["builtin"]);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("BASE with a stamp of a few instructions") && said.contains("Goal"), "{said}");
    assert!(
        std::fs::read_to_string(&lines)
            .expect("lines")
            .starts_with("BASE:1l:Observation:slow,round=1:Time:ns ")
    );
}

#[test]
fn unwritable_outputs_are_refused_before_the_run() {
    for source in ["douglas", "bates", "smith", "nishigaki", "cooper"] {
        let ended = papers(&[source, "--quick", "--json", "/no/such/directory/r.json"]);
        assert_eq!(ended.status.code(), Some(125));
        assert!(String::from_utf8_lossy(&ended.stderr).contains("/no/such/directory/r.json"));
    }
}
