//! The program's own mappings: served, changed, moved, laid over, given back in parts.

use vellum_conformance::{Place, check_all, served};
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
