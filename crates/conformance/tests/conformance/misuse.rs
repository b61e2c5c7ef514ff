//! Misuse that is promised to be caught: the process ends with `SIGABRT` after one line that names the address.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use vellum_conformance::{Place, plain, served};

const ABORTED: i32 = 6;

fn complaint(program: &std::path::Path, scenario: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg(scenario);
    let outcome = served(command);
    let text = outcome.text();
    let address = text.lines().next().unwrap_or_default();
    let mut lines = outcome.stderr.lines();
    let line = lines.next().unwrap_or_default();
    let names_it = line.starts_with("vellum: ") && line.contains(&format!("({address}): "));
    let right = outcome.status.signal() == Some(ABORTED) && names_it && lines.next().is_none();
    (!right).then(|| format!("expected one line naming {address} and an abort, got {outcome}"))
}

#[test]
fn promised_misuse_is_caught() {
    let place = Place::new();
    let program = place.program("misuse.c", &["-pthread"]);
    let names = plain(Command::new(&program)).succeeded().text();
    let complaints: Vec<String> = names.lines().filter_map(|name| complaint(&program, name)).collect();
    assert!(names.lines().count() > 20, "{names}");
    assert!(complaints.is_empty(), "{}\n{} went wrong", complaints.join("\n\n"), complaints.len());
}
