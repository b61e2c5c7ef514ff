//! Tests of `fork` at any moment in a threaded process, in the default and the hardened mode. The environment
//! variable `FORKS` sets the number of forks.

vellum_conformance::scenarios! { usual: "forks.c", ["-pthread"], [];
    one_thread_forks_as_one vellum_memory_goes_back_after_a_fork threads_fork_at_any_moment
    programs_are_started_at_any_moment generations a_forking_server
}

vellum_conformance::scenarios! { hardened: "forks.c", ["-pthread"], [("VELLUM_HARDEN", "1")];
    one_thread_forks_as_one vellum_memory_goes_back_after_a_fork threads_fork_at_any_moment
    programs_are_started_at_any_moment generations a_forking_server
}
