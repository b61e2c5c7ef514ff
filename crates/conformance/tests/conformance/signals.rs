//! Memory used from signal handlers, and under a filter on system calls.

use vellum_conformance::{Place, check_all};

#[test]
fn handlers() {
    let place = Place::new();
    check_all(&place.program("signals.c", &["-pthread"]));
}

vellum_conformance::scenarios! { system_call_filters: "seccomp.c", [], [];
    kills_by_prctl kills_by_syscall kills_after_use refuses_by_prctl refuses_after_use
}
