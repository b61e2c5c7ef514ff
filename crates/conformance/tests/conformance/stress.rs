//! Threads, forks, random sizes, random lifetimes; and the same with every kernel facility taken away in
//! turn.
//!
//! The seed is printed, and `VELLUM_TEST_SEED` sets it.

use std::path::Path;
use std::process::Command;
use vellum_conformance::{Outcome, Place, plain, served};
use vellum_sys::Caps;

/// A seed for this run, and how to run it again.
fn seed() -> String {
    (vellum_random::test_seed(None) as u32).to_string()
}

fn stress(program: &Path, arguments: [&str; 4], environment: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied());
    let outcome = served(command).succeeded();
    assert_eq!(outcome.text(), format!("seed {} done\n", arguments[0]), "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");
    outcome
}

#[test]
fn threads_forks_and_random_lifetimes() {
    let place = Place::new();
    let program = place.program("stress.c", &["-pthread"]);
    let seed = seed();
    let mut command = Command::new(&program);
    command.args([&seed, "2", "2000", "2"]);
    plain(command).succeeded();
    stress(&program, [&seed, "2", "150000", "30"], &[]);
    stress(&program, [&seed, "8", "30000", "30"], &[]);
}

/// What an older kernel, or less privilege, lacks: each facility alone, and all of them.
#[test]
fn every_capability_masked_in_turn() {
    let place = Place::new();
    let program = place.program("stress.c", &["-pthread"]);
    let remaps = place.program("remaps.c", &[]);
    let interface = place.program("interface.c", &["-ldl"]);
    let seed = seed();
    let all = Caps::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
    let masks = Caps::NAMES.iter().map(|(name, _)| *name).chain([all.as_str()]);
    for mask in masks {
        eprintln!("VELLUM_MASK={mask}");
        let masked = [("VELLUM_MASK", mask)];
        stress(&program, [&seed, "3", "12000", "6"], &masked);
        for (program, scenario) in [
            (&remaps, "random_operations"),
            (&remaps, "remapping"),
            (&interface, "realloc_keeps_contents_up_and_down"),
            (&interface, "calloc_clears_dirty_memory"),
        ] {
            let mut command = Command::new(program);
            command.arg(scenario).env("VELLUM_TEST_SEED", &seed).envs(masked);
            let outcome = served(command).succeeded();
            assert_eq!(outcome.stderr, "", "{outcome}");
        }
    }
}

#[test]
fn every_setting_of_every_knob() {
    let place = Place::new();
    let program = place.program("stress.c", &["-pthread"]);
    let seed = seed();
    let settings = [
        ("VELLUM_DECAY_MS", "0"),
        ("VELLUM_DECAY_MS", "1"),
        ("VELLUM_DECAY_MS", "3600000"),
        ("VELLUM_HUGE", "always"),
        ("VELLUM_HUGE", "never"),
        ("VELLUM_MMAP", "off"),
        ("VELLUM_DISABLE", "0"),
    ];
    for setting in settings {
        eprintln!("{}={}", setting.0, setting.1);
        stress(&program, [&seed, "3", "12000", "6"], &[setting]);
    }
}

#[test]
fn a_setting_that_makes_no_sense_is_said_and_ignored() {
    for (name, value) in [
        ("VELLUM_DECAY_MS", "soon"),
        ("VELLUM_DECAY_MS", "-1"),
        ("VELLUM_DECAY_MS", "3600001"),
        ("VELLUM_DECAY_MS", "99999999999999999999999"),
        ("VELLUM_HUGE", "maybe"),
        ("VELLUM_MMAP", "1"),
        ("VELLUM_MASK", "no_such_thing"),
        ("VELLUM_DISABLE", "yes"),
    ] {
        let mut command = Command::new("/bin/echo");
        command.arg("said").env(name, value);
        let outcome = served(command).succeeded();
        assert_eq!(outcome.text(), "said\n");
        let expected = format!("vellum: {name}={value} is ignored: it must be ");
        assert!(outcome.stderr.starts_with(&expected), "{outcome}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
        assert_eq!(outcome.attach(), vellum_wire::Attach::Serving);
    }
}
