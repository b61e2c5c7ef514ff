//! Every scenario of one C program, on both allocators.

use crate::run::{Outcome, plain, served};
use std::path::Path;
use std::process::Command;
use vellum_wire::Attach;

/// Names of scenarios that only make sense under Vellum begin so.
const VELLUM_ONLY: &str = "vellum_";

/// Runs all scenarios of `program` with Vellum, and without it as well, and compares.
///
/// # Panics
/// With everything that failed, after all have run.
pub fn check_all(program: &Path) {
    check_all_with(program, &[]);
}

/// The same with environment variables for the runs under Vellum.
///
/// # Panics
/// As [`check_all`].
pub fn check_all_with(program: &Path, environment: &[(&str, &str)]) {
    let names = plain(Command::new(program)).succeeded().text();
    assert!(!names.is_empty(), "{} has no scenarios", program.display());
    let failures: Vec<String> =
        names.lines().filter_map(|name| check(program, name, environment).err()).collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n\n"));
}

fn check(program: &Path, name: &str, environment: &[(&str, &str)]) -> Result<(), String> {
    let command = || {
        let mut command = Command::new(program);
        command.arg(name);
        command
    };
    let mut with_vellum = command();
    with_vellum.envs(environment.iter().copied());
    let with = served(with_vellum);
    if !with.status.success() {
        return Err(format!("with Vellum: {with}"));
    }
    if with.seats.first().map(|seat| seat.attach) != Some(Attach::Serving) {
        return Err(format!("not served by Vellum: {with}"));
    }
    if name.starts_with(VELLUM_ONLY) {
        return Ok(());
    }
    let without = plain(command());
    let agree = |one: &Outcome, other: &Outcome| one.stdout == other.stdout && one.stderr == other.stderr;
    if !without.status.success() {
        return Err(format!("the scenario itself fails, without Vellum: {without}"));
    }
    if !agree(&with, &without) {
        return Err(format!("differs: with Vellum: {with}\nwithout: {without}"));
    }
    Ok(())
}
