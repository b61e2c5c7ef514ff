//! Memory used from signal handlers, and under a filter on system calls.

use vellum_conformance::{Place, check_all};

#[test]
fn handlers() {
    let place = Place::new();
    check_all(&place.program("signals.c", &["-pthread"]));
}

#[test]
fn system_call_filters() {
    let place = Place::new();
    check_all(&place.program("seccomp.c", &[]));
}
