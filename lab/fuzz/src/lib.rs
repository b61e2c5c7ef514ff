//! Fuzz targets: functions that call the project's parsers with arbitrary bytes, one for each parser.
//!
//! The bytes may be a file that was cut off, a table with a typing error, damaged shared memory, a debug
//! section of a strange compiler. Invariants of every parser:
//! - It does not panic (an overflow is a panic here).
//! - It reads nothing beyond its input.
//! - Its memory and time are bounded by the input's length.
//! - If the project also writes the format, the parsed value is written and read again, and must be the same.
//!
//! ```text
//! corpus/NAME/* ──▶ tests/kept ── each file, and thousands of variants ─────┐
//!                                                                           ├─▶ Target::run(&[u8])
//! targets/NAME.rs ── cargo-fuzz, for as long as one likes ──────────────────┘
//! ```
//!
//! A target panics if an invariant is broken, and returns otherwise. [`TARGETS`] lists them.
//! `lab/fuzz/README.md` lists each target's parser and invariants, `CONTRIBUTING.md` the steps to add one.
//! Nothing depends on this crate.

mod elf;
mod fleet;
mod govern;
mod kernel;
mod measured;
mod sizes;
mod split;
mod wire;

pub use elf::{demangle, elf_image, elf_symbols, unwind};
pub use fleet::{node, recommend};
pub use govern::{http_request, jobs, state};
pub use kernel::{btf, cgroups, perf_ring, procfs};
pub use measured::{json, observations, trace, watch};
pub use sizes::sizes;
pub use wire::{advice, board, held, ledger};

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target and of its folder in the corpus.
    pub name: &'static str,
    /// Calls the reader.
    pub run: fn(&[u8]),
    /// Words in the reader's format.
    pub words: &'static [&'static str],
}

/// All targets, by name.
pub const TARGETS: &[Target] = &[
    Target { name: "advice", run: advice, words: &["VADV"] },
    Target { name: "board", run: board, words: &["VELLUM\0B"] },
    Target { name: "btf", run: btf, words: &["\0s\0", "\0c\0", "\0e\0", "\0x\0"] },
    Target { name: "cgroups", run: cgroups, words: kernel::GROUP_WORDS },
    Target { name: "demangle", run: demangle, words: elf::MANGLED },
    Target { name: "elf_image", run: elf_image, words: elf::WORDS },
    Target { name: "elf_symbols", run: elf_symbols, words: elf::WORDS },
    Target { name: "held", run: held, words: &["\x01\0\0\0", "\x02\0\0\0", "/prog\0\0\0"] },
    Target { name: "http_request", run: http_request, words: govern::HTTP_WORDS },
    Target { name: "jobs", run: jobs, words: govern::JOBS_WORDS },
    Target { name: "json", run: json, words: measured::JSON_WORDS },
    Target { name: "ledger", run: ledger, words: &["VELLUM\0C"] },
    Target { name: "node", run: node, words: fleet::NODE_WORDS },
    Target { name: "observations", run: observations, words: measured::LINE_WORDS },
    Target { name: "perf_ring", run: perf_ring, words: &["\0\0\0\0\0\0\0\0", "/bin/sh"] },
    Target { name: "procfs", run: procfs, words: kernel::PROC_WORDS },
    Target { name: "recommend", run: recommend, words: fleet::RECOMMEND_WORDS },
    Target { name: "sizes", run: sizes, words: sizes::WORDS },
    Target { name: "state", run: state, words: govern::STATE_WORDS },
    Target { name: "trace", run: trace, words: measured::TRACE_WORDS },
    Target { name: "unwind", run: unwind, words: &["zR\0", "zPLR\0"] },
    Target { name: "watch", run: watch, words: measured::WATCH_WORDS },
];
