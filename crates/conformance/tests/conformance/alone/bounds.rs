//! Tests that programs with a limit on page frames (`--frames`) exceed it by only a fixed amount.
//!
//! They run alone, because with all processors busy, pages arrive faster than the pager evicts others.

use std::process::Command;
use vellum_conformance::{plain, served, skip, tool, with_args, with_env};
use vellum_wire::Counter;

/// The memory a process may have outside its frames, in KiB.
const BESIDE_KIB: u64 = 12 << 10;

/// Splits a program's output into its lines and the peak of its memory in KiB, which it prints.
fn said(text: &str) -> (Vec<&str>, u64) {
    let (peaks, lines): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("VmHWM"));
    let peak = peaks.iter().filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).max();
    (lines, peak.expect("the program says its peak"))
}

/// The number of runs; one run must stay within the bound.
const RUNS: u32 = 3;

/// Runs a program that needs far more than `frames_mib` MiB in that many frames, and compares its output
/// with a plain run. Its peak may exceed the frames only by [`BESIDE_KIB`].
fn bounded(make: impl Fn() -> Command, frames_mib: u64) {
    let without = plain(make()).succeeded();
    let plain_text = without.text();
    let (expected, plain_peak) = said(&plain_text);
    let most = (frames_mib << 10) + BESIDE_KIB;
    assert!(plain_peak > 2 * most, "the program needs no more: {without}");
    let mut least = u64::MAX;
    for _ in 0..RUNS {
        let paged = served(with_env(make(), &[("VELLUM_FRAMES", &format!("{frames_mib}M"))]));
        if paged.stderr.contains("vellum: nothing is paged") {
            return skip("nothing can be paged here");
        }
        assert!(paged.status.success(), "{paged}");
        let count = |counter| paged.seats.iter().map(|seat| seat.get(counter)).max().unwrap_or(0);
        assert!(count(Counter::PeakPagedFrames) > 0, "nothing was paged: {paged}");
        let text = paged.text();
        let (lines, peak) = said(&text);
        assert_eq!(lines, expected, "{paged}");
        eprintln!("{peak} KiB in memory, {plain_peak} without Vellum, {most} allowed");
        least = least.min(peak);
        if least <= most {
            return;
        }
    }
    panic!("{least} KiB in memory at least, {most} allowed");
}

const PEAK: &str = "
for line in open('/proc/self/status'):
    if line.startswith('VmHWM'): print(line.strip())
";

fn python_with(library: Option<&str>, program: &str, frames_mib: u64) {
    let Some(python) = tool("python3") else { return skip("no python3") };
    if let Some(library) = library {
        let found = Command::new(&python).args(["-c", &format!("import {library}")]).output();
        if !found.is_ok_and(|found| found.status.success()) {
            return skip(format!("no {library} for python3"));
        }
    }
    bounded(|| with_args(&python, &["-c", &format!("{program}{PEAK}")]), frames_mib);
}

#[test]
fn dictionary_of_numbers_stays_within_bounds() {
    let program = "
numbers = {i: i * 7 for i in range(1500000)}
seen = 0
for key, value in numbers.items(): seen = (seen * 31 + key ^ value) & 0xffffffffffff
print(len(numbers), seen)
";
    python_with(None, program, 16);
}

#[test]
fn arrays() {
    let program = "
import numpy
a = numpy.arange(6000000, dtype=numpy.float64)
b = numpy.sqrt(a) * 3
print(float((a * 2 + b).sum()), float(b[::1000].sum()))
";
    python_with(Some("numpy"), program, 16);
}

#[test]
fn database_in_memory_stays_within_bounds() {
    let Some(sqlite) = tool("sqlite3") else { return skip("no sqlite3") };
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("script");
    let text = "
create table t(a integer primary key, b text, c integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
    insert into t select i, 'row number ' || i || ' with some more text to fill it', (i * 7919) % 1000003 from n;
create index tc on t(c);
select count(*), sum(c), min(b), max(b) from t;
select a, b, c from t where c between 1000 and 1040 order by c, a;
.shell grep VmHWM /proc/$PPID/status
";
    std::fs::write(&script, text).expect("a file");
    bounded(|| with_args(&sqlite, &[":memory:", &format!(".read {}", script.display())]), 16);
}
