//! Tests that programs with few page frames, and therefore with paged big blocks, work unchanged.

use std::process::Command;
use vellum_conformance::{plain, served, skip, tool, with_args, with_env};
use vellum_wire::Counter;

/// A quarter of each block of the program, an eighth of all.
const FRAMES: (&str, &str) = ("VELLUM_FRAMES", "2M");

vellum_conformance::scenarios! { blocks: "paging.c", ["-pthread"], [super::FRAMES];
    walk dropped files streams messages threads signals forks vellum_behind_our_back
}

// System calls on big blocks whose pages are evicted.
vellum_conformance::scenarios! { calls: "calls.c", ["-pthread"], [super::FRAMES];
    data messages streams waits processes
}

/// The message of a process whose memory cannot be paged.
const NOTHING_IS_PAGED: &str = "vellum: nothing is paged";

/// Runs the command paged and without Vellum. The output of both must be the same, and pages must have been
/// evicted and read back.
fn same_paged(make: impl Fn() -> Command, frames: &str) {
    let without = plain(make()).succeeded();
    let paged = served(with_env(make(), &[("VELLUM_FRAMES", frames)]));
    if paged.stderr.contains(NOTHING_IS_PAGED) {
        return skip("nothing can be paged here");
    }
    assert!(paged.status.success(), "{paged}");
    assert!(
        paged.stdout == without.stdout && paged.stderr == without.stderr,
        "paged:\n{paged}\nwithout:\n{without}"
    );
    let count = |counter| paged.seats.iter().map(|seat| seat.get(counter)).sum::<u64>();
    let (written, read) = (count(Counter::PagedWritten), count(Counter::PagedRead));
    assert!(written > 0 && read > 0, "{written} pages written, {read} read: {paged}");
}

#[test]
fn sort() {
    let Some(sort) = tool("sort") else { return skip("no sort") };
    let directory = tempfile::tempdir().expect("a directory");
    let input = directory.path().join("lines");
    let mut state = 1u64;
    let lines: String = (0..200_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{:016x}\n", state ^ state >> 31)
        })
        .collect();
    std::fs::write(&input, lines).expect("a file");
    let input = input.to_str().expect("a plain path");
    same_paged(|| with_args(&sort, &["--parallel=2", "-S", "32M", input]), "4M");
}

/// A full store makes an allocation fail, and a crash leaves nothing behind.
#[test]
fn full_store_fails_allocations_and_crash_leaves_no_store() {
    let Some(shell) = tool("sh") else { return skip("no sh") };
    let Some(python) = tool("python3") else { return skip("no python3") };
    let directory = tempfile::tempdir().expect("a directory");
    let paged = |script: &str| {
        let mut command = Command::new(&shell);
        command.args(["-c", script, "sh"]).arg(&python);
        command.env("VELLUM_FRAMES", "1M").env("VELLUM_STORE", directory.path());
        served(command)
    };
    let left = || std::fs::read_dir(directory.path()).expect("a directory").count();
    // A limit on file sizes simulates a full disk; requests beyond it are refused.
    const SCRIPT: &str = include_str!("../../c/programs/full_store.py");
    let full = format!("ulimit -f 16384; exec \"$1\" -c '{SCRIPT}'");
    let refused = paged(&full);
    if refused.stderr.contains(NOTHING_IS_PAGED) {
        return skip("nothing can be paged here");
    }
    assert_eq!(refused.clone().succeeded().text(), "refused True\nTrue\n", "{refused}");
    for signal in ["SIGINT", "SIGKILL", "SIGSEGV"] {
        let ended = paged(&format!(
            "exec \"$1\" -c 'import os, signal; b = bytearray(b\"x\") * 20000000; os.kill(os.getpid(), signal.{signal})'"
        ));
        assert!(!ended.status.success(), "{ended}");
        assert_eq!(left(), 0, "{signal} leaves files behind");
    }
}
