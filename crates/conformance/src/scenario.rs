//! Runs the scenarios (test cases) of a C program with and without Vellum, and compares the outcomes.

use crate::run::{Outcome, plain, served};
use std::path::Path;
use std::process::Command;
use vellum_wire::Attach;

/// The name prefix of scenarios that only make sense under Vellum.
const VELLUM_ONLY: &str = "vellum_";

/// A module of tests: one for each scenario of a program, and a check that there are no others.
///
/// The program is `c/SOURCE`, compiled with these flags. The variables are set in the runs under Vellum;
/// variables that are not Vellum's own are set in the plain runs too.
#[macro_export]
macro_rules! scenarios {
    ($module:ident: $source:literal, $flags:expr, $environment:expr; $($name:ident)+) => {
        mod $module {
            fn program() -> std::path::PathBuf {
                $crate::compiled($source, &$flags)
            }
            $(
                #[test]
                fn $name() {
                    $crate::scenario::check_one(&program(), stringify!($name), &$environment);
                }
            )+

            #[test]
            fn these_are_all() {
                assert_eq!($crate::scenario::names(&program()), [$(stringify!($name)),+]);
            }
        }
    };
}

/// The names of the scenarios of `program`.
///
/// # Panics
/// If the program has no scenarios.
pub fn names(program: &Path) -> Vec<String> {
    let text = plain(Command::new(program)).succeeded().text();
    assert!(!text.is_empty(), "{} has no scenarios", program.display());
    text.lines().map(str::to_owned).collect()
}

/// Runs all scenarios of `program` with and without Vellum, with these variables, and compares the outcomes.
///
/// # Panics
/// With all failures, after all scenarios have run.
pub fn check_all(program: &Path, environment: &[(&str, &str)]) {
    check_those(program, environment, |_| true);
}

/// Like [`check_all`], for the scenarios whose names `wanted` selects.
///
/// # Panics
/// As [`check_all`].
pub fn check_those(program: &Path, environment: &[(&str, &str)], wanted: impl Fn(&str) -> bool) {
    let names = names(program);
    let names = names.iter().filter(|name| wanted(name));
    let failures: Vec<String> = names.filter_map(|name| check(program, name, environment).err()).collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n\n"));
}

/// Like [`check_all`], for one scenario.
///
/// # Panics
/// If it fails, or differs.
pub fn check_one(program: &Path, name: &str, environment: &[(&str, &str)]) {
    if let Err(why) = check(program, name, environment) {
        panic!("{why}");
    }
}

fn check(program: &Path, name: &str, environment: &[(&str, &str)]) -> Result<(), String> {
    let command = |is_for: fn(&str) -> bool| {
        let mut command = Command::new(program);
        command.arg(name).envs(environment.iter().copied().filter(|(variable, _)| is_for(variable)));
        command
    };
    let with = served(command(|_| true));
    if !with.status.success() {
        return Err(format!("with Vellum: {with}"));
    }
    if with.seats.first().map(|seat| seat.attach) != Some(Attach::Serving) {
        return Err(format!("not served by Vellum: {with}"));
    }
    if name.starts_with(VELLUM_ONLY) {
        return Ok(());
    }
    let without = plain(command(|variable| !variable.starts_with("VELLUM_")));
    let agree = |one: &Outcome, other: &Outcome| one.stdout == other.stdout && one.stderr == other.stderr;
    if !without.status.success() {
        return Err(format!("the scenario itself fails, without Vellum: {without}"));
    }
    if !agree(&with, &without) {
        return Err(format!("differs: with Vellum: {with}\nwithout: {without}"));
    }
    Ok(())
}
