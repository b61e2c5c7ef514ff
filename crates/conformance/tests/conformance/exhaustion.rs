//! Limits of address space, data, map entries and commitment: null and `ENOMEM`, never a crash.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::process::CommandExt;
use std::process::Command;
use vellum_conformance::{Place, plain, served};

/// As the program has it.
const LIMIT: u64 = 256 << 20;

vellum_conformance::scenarios! { limits_set_by_the_program: "exhaustion.c", ["-pthread"], [];
    limited_address_space limited_address_space_after_use limited_from_the_start limited_data growing_to_the_limit
    threads_at_the_limit used_up_map_entries vellum_few_map_entries
}

/// Runs a scenario under a limit that the program begins with.
fn limited_from_the_start(scenario: &str) {
    let program = Place::new().program("exhaustion.c", &["-pthread"]);
    let limited = || {
        let mut command = Command::new(&program);
        command.arg(scenario);
        let set = || {
            setrlimit(Resource::As, Rlimit { current: Some(LIMIT), maximum: Some(LIMIT) })
                .map_err(std::io::Error::from)
        };
        // SAFETY: setrlimit is one system call, which a forked child may make.
        unsafe { command.pre_exec(set) };
        command
    };
    plain(limited()).succeeded();
    served(limited()).succeeded();
    assert_ne!(getrlimit(Resource::As).current, Some(LIMIT), "the limit is the child's alone");
}

#[test]
fn all_sizes_under_a_limit_from_the_start() {
    limited_from_the_start("limited_from_the_start");
}

#[test]
fn growing_to_a_limit_from_the_start() {
    limited_from_the_start("growing_to_the_limit");
}
