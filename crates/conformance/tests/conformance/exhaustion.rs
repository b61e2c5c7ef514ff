//! Tests that requests get null and `ENOMEM` when address space, data segment or map entries (VMAs) run out.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use vellum_conformance::{Outcome, Place, compiled, plain, same, served, skip};

/// The limit in bytes, the same as in the C program.
const LIMIT: u64 = 256 << 20;

vellum_conformance::scenarios! { limits_set_by_the_program: "exhaustion.c", ["-pthread"], [];
    limited_address_space limited_address_space_after_use limited_from_the_start limited_data
    limited_by_another_process growing_to_the_limit threads_at_the_limit used_up_map_entries vellum_few_map_entries
}

/// Runs a scenario under a limit that is set before the program starts.
fn limited_from_the_start(scenario: &str) {
    let program = compiled("exhaustion.c", &["-pthread"]);
    let limited = || {
        let mut command = Command::new(&program);
        command.arg(scenario);
        let set = || {
            setrlimit(Resource::As, Rlimit { current: Some(LIMIT), maximum: Some(LIMIT) })
                .map_err(std::io::Error::from)
        };
        // SAFETY: the closure only calls setrlimit, one system call, which is allowed after fork.
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

#[test]
fn requests_beyond_the_machine_are_refused_as_without_vellum() {
    let program = compiled("beyond.c", &[]);
    let outcome = same(|| Command::new(&program));
    assert_eq!(outcome.text().lines().count(), 10, "{outcome}");
}

/// The size of the core dump of a run in a separate folder. The dump must contain the blocks, but not the
/// memory that the program excluded.
fn dumped(program: &Path, how: &str, run: fn(Command) -> Outcome) -> Option<u64> {
    let place = Place::new();
    let mut command = Command::new(program);
    command.arg(how).current_dir(place.path());
    run(command);
    let mut entries = std::fs::read_dir(place.path()).expect("a folder").flatten();
    let core = entries.find(|entry| entry.file_name().to_string_lossy().starts_with("core"))?;
    let core = std::fs::read(core.path()).expect("a core dump");
    for (text, is_there) in [(&b"small-a-block"[..], true), (b"big-a-block", true), (b"left-a-out", false)] {
        assert_eq!(core.windows(text.len()).any(|bytes| bytes == text), is_there, "{how}: {text:?}");
    }
    Some(core.len() as u64)
}

#[test]
fn core_dumps_are_as_large_as_without_vellum() {
    let program = compiled("dumps.c", &[]);
    for how in ["abort", "gcore"] {
        let (Some(without), Some(with)) = (dumped(&program, how, plain), dumped(&program, how, served))
        else {
            skip(format!("no core dump by {how} is to be had here"));
            continue;
        };
        assert!(with <= without / 5 * 6, "{how}: {with} bytes, {without} without Vellum");
    }
}
