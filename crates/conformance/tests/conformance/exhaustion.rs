//! Limits of address space, data, map entries and commitment: null and `ENOMEM`, never a crash.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::process::CommandExt;
use std::process::Command;
use vellum_conformance::{Place, check_all, plain, served, skip};

const LIMIT: u64 = 512 << 20;

#[test]
fn limits_set_by_the_program() {
    let place = Place::new();
    check_all(&place.program("exhaustion.c", &["-pthread"]));
}

#[test]
fn limits_found_at_the_start() {
    let place = Place::new();
    let program = place.program("exhaustion.c", &["-pthread"]);
    for scenario in ["limited_from_the_start", "growing_to_the_limit"] {
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
    }
    assert_ne!(getrlimit(Resource::As).current, Some(LIMIT), "the limit is the child's alone");
}

/// The machine-wide setting is changed only when asked for, and put back in any case.
#[test]
fn strict_commitment() {
    const SETTING: &str = "/proc/sys/vm/overcommit_memory";
    struct PutBack(String);
    impl Drop for PutBack {
        fn drop(&mut self) {
            let _ = std::fs::write(SETTING, self.0.trim());
        }
    }
    if std::env::var_os("VELLUM_TEST_OVERCOMMIT").is_none() {
        return skip("vm.overcommit_memory=2 is machine-wide; VELLUM_TEST_OVERCOMMIT=1 tries it");
    }
    let before = std::fs::read_to_string(SETTING).expect("the setting can be read");
    if std::fs::write(SETTING, "2").is_err() {
        return skip("vm.overcommit_memory can only be set by root");
    }
    let _put_back = PutBack(before);
    let place = Place::new();
    let program = place.program("stress.c", &["-pthread"]);
    let mut command = Command::new(program);
    command.args(["1", "2", "3000", "3"]);
    served(command).succeeded();
    let program = place.program("exhaustion.c", &["-pthread"]);
    for scenario in ["growing_to_the_limit", "used_up_map_entries"] {
        let mut command = Command::new(&program);
        command.arg(scenario);
        served(command).succeeded();
    }
}
