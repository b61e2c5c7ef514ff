//! `vellum papers`: how it starts the experiments' program, which has tests of its own.

use std::path::Path;
use std::process::{Command, Output};

const VELLUM: &str = env!("CARGO_BIN_EXE_vellum");

fn papers(program: impl AsRef<Path>, words: &[&str]) -> Output {
    Command::new(program.as_ref()).arg("papers").args(words).output().expect("the command starts")
}

#[test]
fn the_experiments_are_started_with_all_words_and_their_status_is_passed_on() {
    let place = tempfile::tempdir().expect("a temporary directory");
    // By a shell, so that no other test's child holds these files open for writing when they are run.
    let make = |script: &str| {
        let made = Command::new("sh").args(["-c", script, VELLUM]).current_dir(&place).status();
        assert!(made.is_ok_and(|status| status.success()), "{script}");
    };
    make("cp \"$0\" vellum");
    let vellum = place.path().join("vellum");
    let absent = papers(&vellum, &["bates", "--quick"]);
    let said = String::from_utf8_lossy(&absent.stderr);
    assert_eq!(absent.status.code(), Some(125), "{said}");
    assert!(said.contains("vellum-papers not found") && said.contains("build"), "{said}");

    make("printf '#!/bin/sh\\necho \"$@\"\\nexit 7\\n' > vellum-papers && chmod +x vellum-papers");
    let ended = papers(&vellum, &["bates", "--only", "clocks", "--json", "-"]);
    assert_eq!((ended.status.code(), &ended.stdout[..]), (Some(7), &b"bates --only clocks --json -\n"[..]));
}
