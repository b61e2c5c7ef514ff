//! Tests of subcommands that are separate programs: the message if the program is missing, and its start if
//! it is in the folder of `vellum`.

use crate::common::{VELLUM, out, said, vellum};
use std::process::{Command, Output};

/// A subcommand, the program that it starts, and the command that builds this program.
const SUBCOMMANDS: [(&str, &str, &str); 4] = [
    ("agent", "vellum-fleet", "fleet/build"),
    ("recommend", "vellum-fleet", "fleet/build"),
    ("plan", "vellum-fleet", "fleet/build"),
    ("papers", "vellum-papers", "lab/build"),
];

/// A folder with a copy of `vellum`. A shell copies it, so that no other test's child has the file open for
/// writing when it is executed.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a temporary directory"));
        place.make("cp \"$0\" vellum");
        place
    }

    fn make(&self, script: &str) {
        let made = Command::new("sh").args(["-c", script, VELLUM]).current_dir(&self.0).status();
        assert!(made.is_ok_and(|status| status.success()), "{script}");
    }

    fn vellum(&self) -> std::path::PathBuf {
        self.0.path().join("vellum")
    }

    fn ran(&self, words: &[&str]) -> Output {
        Command::new(self.vellum()).args(words).output().expect("the command starts")
    }
}

#[test]
fn missing_companion_error_gives_the_build_command() {
    let place = Place::new();
    for (subcommand, program, build) in SUBCOMMANDS {
        let ended = place.ran(&[subcommand, "--help"]);
        let said = said(&ended);
        assert_eq!((ended.status.code(), ended.stdout.len()), (Some(125), 0), "{subcommand}: {said}");
        let beside = format!("cannot find {program} beside {}", place.vellum().display());
        assert!(said.contains(&beside) && said.contains(&format!("(build it with {build})")), "{said}");
    }
}

#[test]
fn companion_gets_arguments_and_returns_its_status() {
    let place = Place::new();
    for (subcommand, program, _) in SUBCOMMANDS {
        place.make(&format!(
            "printf '#!/bin/sh\\nprintf \"[%%s]\" \"$@\"\\nexit 7\\n' > {program} && chmod +x {program}"
        ));
        for words in [&["--help"][..], &["-h"], &["--", "a b", "--json", "-"], &["help"], &[]] {
            let ended = place.ran(&[&[subcommand], words].concat());
            // The fleet's program has these subcommands; the papers' program takes none.
            let first = if program == "vellum-fleet" { Some(&subcommand) } else { None };
            let mut passed: String = first.into_iter().chain(words).map(|word| format!("[{word}]")).collect();
            if passed.is_empty() {
                // printf without arguments prints its format once.
                passed = "[]".to_owned();
            }
            assert_eq!(out(&ended), passed, "{subcommand} {words:?}");
            assert_eq!(ended.status.code(), Some(7), "{subcommand} {words:?}");
        }
    }
}

#[test]
fn help_lists_the_subcommands() {
    let help = out(&vellum(["--help"]));
    for (subcommand, ..) in SUBCOMMANDS {
        assert!(help.contains(&format!("\n  {subcommand} ")), "{help}");
    }
}
