//! Tests of programs that use memory in signal handlers, or under a filter on system calls (seccomp).

use vellum_conformance::{check_all, compiled};

#[test]
fn handlers() {
    check_all(&compiled("signals.c", &["-pthread"]), &[]);
}

vellum_conformance::scenarios! { system_call_filters: "seccomp.c", [], [];
    kills_by_prctl kills_by_syscall kills_after_use refuses_by_prctl refuses_after_use
}
