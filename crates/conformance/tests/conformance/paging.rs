//! Big blocks in few frames: programs see nothing of it, with privilege and without, whatever the
//! kernel lacks.

use std::process::Command;
use vellum_conformance::scenario::check_all_with;
use vellum_conformance::{Place, plain, served, skip, tool, with_args};
use vellum_wire::Counter;

/// A quarter of each block of the program, an eighth of all.
const FRAMES: (&str, &str) = ("VELLUM_FRAMES", "2M");

vellum_conformance::scenarios! { with_whatever_the_kernel_allows: "paging.c", ["-pthread"], [super::FRAMES];
    walk dropped files streams messages threads signals forks vellum_behind_our_back
}
vellum_conformance::scenarios! { without_privilege:
    "paging.c", ["-pthread"], [super::FRAMES, ("VELLUM_MASK", "kernel_faults")];
    walk dropped files streams messages threads signals forks vellum_behind_our_back
}
vellum_conformance::scenarios! { without_moving_frames:
    "paging.c", ["-pthread"], [super::FRAMES, ("VELLUM_MASK", "kernel_faults,move")];
    walk dropped files streams messages threads signals forks vellum_behind_our_back
}

// System calls with whatever they are handed in big blocks whose pages are out.
vellum_conformance::scenarios! { calls: "calls.c", ["-pthread", "-lrt"], [super::FRAMES];
    paths data descriptors sockets times_and_facts processes signals queues by_number protected
}
vellum_conformance::scenarios! { calls_without_privilege:
    "calls.c", ["-pthread", "-lrt"], [super::FRAMES, ("VELLUM_MASK", "kernel_faults")];
    paths data descriptors sockets times_and_facts processes signals queues by_number protected
}
vellum_conformance::scenarios! { calls_without_moving_frames:
    "calls.c", ["-pthread", "-lrt"], [super::FRAMES, ("VELLUM_MASK", "kernel_faults,move")];
    paths data descriptors sockets times_and_facts processes signals queues by_number protected
}

#[test]
fn calls_that_wait() {
    let program = Place::new().program("waits.c", &["-pthread", "-lrt"]);
    for mask in ["", "kernel_faults", "kernel_faults,move"] {
        check_all_with(&program, &[FRAMES, ("VELLUM_MASK", mask)]);
    }
}

/// Runs the command paged and without Vellum; both must say the same, and pages must have gone out
/// and come back.
///
/// With privilege small blocks and mappings are paged too: `whole` frames are for that.
fn same_paged(make: impl Fn() -> Command, frames: &str, whole: &str) {
    let without = plain(make()).succeeded();
    for (mask, frames) in [("", whole), ("kernel_faults", frames)] {
        let mut paged = make();
        paged.env("VELLUM_FRAMES", frames).env("VELLUM_MASK", mask);
        let paged = served(paged);
        assert!(paged.status.success(), "{paged}");
        assert!(
            paged.stdout == without.stdout && paged.stderr == without.stderr,
            "paged:\n{paged}\nwithout:\n{without}"
        );
        let count = |counter| paged.seats.iter().map(|seat| seat.get(counter)).sum::<u64>();
        if count(Counter::PeakPagedFrames) == 0 && paged.stderr.contains("userfaultfd") {
            return skip("this kernel or privilege has no userfaultfd");
        }
        let (written, read) =
            (count(Counter::PagedWritten), count(Counter::PagedReadRead) + count(Counter::PagedWriteRead));
        let packed = count(Counter::PagedPacked);
        let unpacked = count(Counter::PagedReadUnpacked) + count(Counter::PagedWriteUnpacked);
        let (written, read) = (written + packed, read + unpacked);
        assert!(written > 0 && read > 0, "{written} pages written, {read} read: {paged}");
    }
}

/// Pages that compress, and are not much more than the frames, come from compressed memory for the
/// most part. Those that do not compress go to the store, as ever.
#[test]
fn compressed_pages() {
    let Some(python) = tool("python3") else { return skip("no python3") };
    let program = "
import hashlib, sys
kind = sys.argv[1]
def block(i):
    seed = hashlib.sha512(bytes([i])).digest()
    if kind == 'text': return bytearray(seed.hex().encode() * 16384)
    return bytearray(b''.join(hashlib.sha512(seed + j.to_bytes(4, 'big')).digest() for j in range(32768)))
blocks = [block(i) for i in range(12)]
for turn in range(4):
    for b in blocks[turn % 2::2]:
        b[turn * 100] ^= 1
    print([hashlib.sha256(b).hexdigest()[:8] for b in blocks])
";
    for (kind, share) in [("text", "50%"), ("text", "off"), ("noise", "50%")] {
        let make = || with_args(&python, &["-c", program, kind]);
        let without = plain(make()).succeeded();
        let mut paged = make();
        // Big blocks alone, so that what is paged is what the program says.
        paged.env("VELLUM_FRAMES", "12M").env("VELLUM_MASK", "kernel_faults");
        paged.env("VELLUM_COMPRESSED", share);
        let paged = served(paged).succeeded();
        assert_eq!((&paged.stdout, &paged.stderr), (&without.stdout, &without.stderr), "{kind} {share}");
        let count = |counter| paged.seats.iter().map(|seat| seat.get(counter)).sum::<u64>();
        if count(Counter::PeakPagedFrames) == 0 {
            return skip("this kernel or privilege has no userfaultfd");
        }
        let read = count(Counter::PagedReadRead) + count(Counter::PagedWriteRead);
        let unpacked = count(Counter::PagedReadUnpacked) + count(Counter::PagedWriteUnpacked);
        match (kind, share) {
            // A page that leaves before its memory is there goes to the store.
            ("text", "50%") => assert!(unpacked > 2 * read, "{unpacked} decompressed, {read} read"),
            _ => assert!(read > unpacked, "{kind} {share}: {unpacked} decompressed, {read} read"),
        }
    }
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
    same_paged(|| with_args(&sort, &["--parallel=2", "-S", "32M", input]), "4M", "4M");
}

/// A store with no room is an error when memory is asked for, and a crash leaves nothing behind.
#[test]
fn stores_and_ends() {
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
    // A limit on the size of files stands for a disk that is full; requests beyond it are refused.
    let full = "ulimit -f 16384; exec \"$1\" -c '
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
kept = []
try:
    while len(kept) < 100: kept.append(bytearray(b\"x\") * 1000000)
    print(\"no end\")
except MemoryError: print(\"refused\", 5 < len(kept) < 20)
print(all(block == b\"x\" * 1000000 for block in kept[:3]))
'";
    let refused = paged(full);
    if refused.stderr.contains("userfaultfd") {
        return skip("this kernel or privilege has no userfaultfd");
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
