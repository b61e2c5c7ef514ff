//! The program's own mappings: served, changed, moved, laid over, given back in parts.

use std::process::Command;
use vellum_conformance::{Place, check_all, plain, served};
use vellum_wire::Counter;

#[test]
fn anonymous_mappings() {
    let place = Place::new();
    check_all(&place.program("mappings.c", &[]));
}

#[test]
fn mappings_that_change() {
    let place = Place::new();
    check_all(&place.program("remaps.c", &[]));
}

/// What the other test compares would hold trivially if no mapping were served.
#[test]
fn mappings_are_served_at_all() {
    let place = Place::new();
    let program = place.program("mappings.c", &[]);
    let run = |knob: &str| {
        let mut command = std::process::Command::new(&program);
        command.arg("memory_is_zero_after_reuse").env("VELLUM_MMAP", knob);
        served(command).succeeded().seats[0].get(Counter::MmapServed)
    };
    assert!(run("on") > 20, "mappings served: {}", run("on"));
    assert_eq!(run("off"), 0);
}

/// Seeds of the fuzzer that the kernel alone is given: the model it checks is the kernel's.
const SEEDS_PLAIN: u64 = 400;
/// Seeds that Vellum is given, unless `VELLUM_FUZZ_SEEDS` says how many.
const SEEDS: u64 = 2000;
/// Seeds of one process: what one has left behind is a part of what the next begins with.
const SEEDS_A_PROCESS: u64 = 200;

#[test]
fn random_calls_are_answered_as_by_the_kernel() {
    let place = Place::new();
    let program = place.program("mapfuzz.c", &[]);
    let run = |first: u64, count: u64| {
        let mut command = Command::new(&program);
        command.args([first.to_string(), count.to_string()]);
        command
    };
    for first in (0..SEEDS_PLAIN).step_by(SEEDS_A_PROCESS as usize) {
        plain(run(first, SEEDS_A_PROCESS)).succeeded();
    }
    let seeds = std::env::var("VELLUM_FUZZ_SEEDS")
        .ok()
        .map_or(SEEDS, |asked| asked.parse().expect("a number of seeds"));
    for first in (0..seeds).step_by(SEEDS_A_PROCESS as usize) {
        let mut command = run(first, SEEDS_A_PROCESS.min(seeds - first));
        // Both sides of what the page layer decides by itself.
        if first / SEEDS_A_PROCESS % 4 == 3 {
            command.env("VELLUM_HUGE", "always").env("VELLUM_DECAY_MS", "10");
        }
        served(command).succeeded();
    }
}
