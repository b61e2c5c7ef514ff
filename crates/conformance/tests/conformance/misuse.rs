//! Tests of the misuse that Vellum guarantees to detect: the process prints one line with the address, then
//! the stack, and ends with `SIGABRT`.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use vellum_conformance::{compiled, plain, served, with_args};

const ABORTED: i32 = 6;
/// The most lines of a stack.
const FRAMES_MAX: usize = 16;

fn complaint(program: &std::path::Path, scenario: &str) -> Option<String> {
    let outcome = served(with_args(program, &[scenario]));
    let text = outcome.text();
    let address = text.lines().next().unwrap_or_default();
    let mut lines = outcome.stderr.lines();
    let line = lines.next().unwrap_or_default();
    let names_it = line.starts_with("vellum: ") && line.contains(&format!("({address}): "));
    let stack: Vec<&str> = lines.collect();
    let shows_stack = stack.iter().all(|line| line.starts_with("  at ")) && stack.len() <= FRAMES_MAX;
    // The stack has the program's own frame if the C library can name an address's module.
    let has_caller = stack.is_empty() || stack[0].starts_with("  at misuse+0x");
    let right = outcome.status.signal() == Some(ABORTED) && names_it && shows_stack && has_caller;
    (!right).then(|| format!("expected one line naming {address}, the stack and an abort, got {outcome}"))
}

#[test]
fn guaranteed_misuse_is_detected() {
    let program = compiled("misuse.c", &["-pthread"]);
    let names = plain(Command::new(&program)).succeeded().text();
    let complaints: Vec<String> = names.lines().filter_map(|name| complaint(&program, name)).collect();
    assert!(names.lines().count() > 20, "{names}");
    assert!(complaints.is_empty(), "{}\n{} went wrong", complaints.join("\n\n"), complaints.len());
}
