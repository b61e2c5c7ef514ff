//! Douglas 2011, section 4.2: faster operations for programs that remap their own pages instead of copying.
//!
//! Three campaigns measure a vector that grows value by value, the relocation and the exchange of blocks,
//! and the allocation of a list of four million items in one call.

use super::bench::Bench;
use crate::finding::table_by;
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use vellum_campaign::cells::{cell, control, middle, ratio, sheet, twin};
use vellum_campaign::{Arm, Cell, GLIBC, Sheet, VELLUM};
use vellum_report::units::size;

const MS: f64 = 1e6;
const US: f64 = 1e3;

pub(super) fn run(bench: &mut Bench<'_>) -> Finding {
    let mut finding = Finding::new(
        "remap",
        "Growing, moving and batching",
        "section 4.2",
        "Published: a vector extends by mapping pages behind itself; memory is relocated or swapped at a speed that \
            does not depend on its amount; a list of four million items is built in one batch \"around 100,000 times faster\".",
        Vec::new(),
    );
    vectors(bench, &mut finding);
    moves(bench, &mut finding);
    lists(bench, &mut finding);
    finding
}

/// A vector from nothing to each size: by copying as `std::vector` does, by realloc, and by Vellum's buffer.
fn vectors(bench: &mut Bench<'_>, finding: &mut Finding) {
    const COPY: &str = "std::vector";
    const REALLOC: &str = "realloc";
    const COPY_ON: &str = "std::vector on Vellum";
    const BUFFER: &str = "buffer";
    let sizes = bench.scale.pick(
        vec![1 << 20, 16 << 20, 256 << 20, 1 << 30],
        vec![1 << 20, 16 << 20, 64 << 20],
        vec![64 << 10],
    );
    // A vector that copies holds the old storage beside the new, and the memory is backed beforehand.
    let (sizes, short) = bench.affordable(&sizes, 3);
    finding.notes.extend(short);
    let (rounds, times) = bench.scale.pick((7, 7), (3, 3), (1, 2));
    let cells: Vec<_> = sizes
        .iter()
        .map(|bytes| {
            let params = |method: &str| {
                [
                    ("method", method.to_owned()),
                    ("bytes", bytes.to_string()),
                    ("times", usize::to_string(&times)),
                ]
            };
            let glibc = |label: &str, method: &str| bench.arm(label, "vector", &params(method));
            let mut arms = vec![
                glibc(COPY, "copy"),
                glibc(&twin(COPY), "copy"),
                glibc(REALLOC, "realloc"),
                glibc(BUFFER, "buffer"),
            ];
            if let Some(vellum) = bench.peer(VELLUM) {
                let launch = bench.launch(Some(vellum), "vector", &params("copy"));
                arms.push(Arm { label: COPY_ON.to_owned(), launch });
            }
            Cell {
                prepare: bench.backing(2 * *bytes),
                ..cell(format!("vector {}", size(*bytes)), rounds, arms)
            }
        })
        .collect();
    let sheets = bench.campaign(&cells);
    let mut table = Table::new(
        "A vector of 8-byte values, grown one by one from nothing: ms; the first time and the median of later ones",
        &[
            ("final_size", "final size"),
            ("copy_first_ms", "std::vector|first"),
            ("copy_warm_ms", "|later"),
            ("realloc_first_ms", "realloc|first"),
            ("realloc_warm_ms", "|later"),
            ("copy_on_vellum_first_ms", "std::vector|on Vellum|first"),
            ("copy_on_vellum_warm_ms", "||later"),
            ("buffer_first_ms", "Vellum's|buffer|first"),
            ("buffer_warm_ms", "||later"),
            ("copy_over_buffer", "std::vector /|buffer, later|[95 %]"),
            ("copy_peak_over_size", "peak / size|std::vector"),
            ("buffer_peak_over_size", "|buffer"),
        ],
    );
    for bytes in &sizes {
        let Some(sheet) = sheet(&sheets, &format!("vector {}", size(*bytes))) else { continue };
        let ms = |arm: &str, metric: &str| Value::of(middle(sheet, arm, metric).map(|ns| ns / MS));
        let peak = |arm: &str| middle(sheet, arm, "peak_bytes").map(|peak| peak / *bytes as f64);
        let over = ratio(sheet, (COPY, "warm_ns"), (BUFFER, "warm_ns"), bench.seed);
        let mut row = vec![Value::text(size(*bytes))];
        for arm in [COPY, REALLOC, COPY_ON, BUFFER] {
            row.extend([ms(arm, "first_ns"), ms(arm, "warm_ns")]);
        }
        row.extend([Value::ratio(over), Value::of(peak(COPY)), Value::of(peak(BUFFER))]);
        table.rows.push(row);
        finding.notes.extend(control(sheet, COPY, "warm_ns", bench.seed));
        let what = format!("{} vector, std::vector over buffer", size(*bytes));
        finding.goals.push(Goal::within(what, "x", Bound::AtLeast(1.0), over));
        if *bytes >= 16 << 20 {
            let what = format!("{} buffer, peak over size", size(*bytes));
            finding.goals.push(Goal::of(what, "x", Bound::AtMost(1.05), peak(BUFFER)));
        }
    }
    let series = |arm: &str, metric: &str| {
        let point = |bytes: &usize| {
            let sheet = sheet(&sheets, &format!("vector {}", size(*bytes)))?;
            Some((*bytes as f64, middle(sheet, arm, metric)? / MS))
        };
        sizes.iter().filter_map(point).collect()
    };
    finding.figures.push(Figure {
        name: "douglas-vector".into(),
        title: "A vector grown one value at a time".into(),
        x: Axis::Bytes("final size".into()),
        y: Axis::Log("ms".into()),
        series: vec![
            Series::line("std::vector, first", series(COPY, "first_ns")),
            Series::line("std::vector, later", series(COPY, "warm_ns")),
            Series::line("realloc, later", series(REALLOC, "warm_ns")),
            Series::line("Vellum's buffer, first", series(BUFFER, "first_ns")),
            Series::line("Vellum's buffer, later", series(BUFFER, "warm_ns")),
        ],
    });
    finding.tables.push(table);
    finding.keep(&sheets);
}

/// Blocks relocated and swapped by page tables, and copied.
fn moves(bench: &mut Bench<'_>, finding: &mut Finding) {
    let powers = |step: usize, last: u32| (20..=last).step_by(step).map(|power| 1usize << power);
    let sizes: Vec<usize> = match bench.scale.pick(0, 1, 2) {
        0 => powers(1, 30).collect(),
        1 => powers(3, 26).collect(),
        _ => vec![4 << 20],
    };
    let (sizes, short) = bench.affordable(&sizes, 3);
    finding.notes.extend(short.map(|note| format!("relocation: {note}")));
    let (rounds, times) = bench.scale.pick((7, 11), (3, 5), (1, 3));
    let name = |bytes: usize, beside: usize| format!("move {} beside {beside}", size(bytes));
    let mut cells = Vec::new();
    for bytes in &sizes {
        for beside in [0, 1] {
            let params = |method: &str| {
                [
                    ("method", method.to_owned()),
                    ("bytes", bytes.to_string()),
                    ("times", usize::to_string(&times)),
                    ("beside", usize::to_string(&beside)),
                ]
            };
            let arms = ["copy", "relocate", "swap"].map(|method| bench.arm(method, "moves", &params(method)));
            let prepare = bench.backing(2 * *bytes);
            cells.push(Cell { prepare, ..cell(name(*bytes, beside), rounds, arms.to_vec()) });
        }
    }
    let sheets = bench.campaign(&cells);
    let mut table = Table::new(
        "Contents moved from block to block, both in use: µs",
        &[
            ("block", "block"),
            ("copy_us", "alone|memcpy"),
            ("relocate_us", "|relocate"),
            ("swap_us", "|swap"),
            ("copy_over_relocate", "memcpy /|relocate|[95 %]"),
            ("copy_over_swap", "|swap|[95 %]"),
            ("beside_copy_us", "beside|a thread|memcpy"),
            ("beside_relocate_us", "||relocate"),
            ("beside_swap_us", "||swap"),
            ("beside_copy_over_relocate", "memcpy /|relocate|[95 %]"),
            ("beside_copy_over_swap", "|swap|[95 %]"),
        ],
    );
    for bytes in &sizes {
        let mut row = vec![Value::text(size(*bytes))];
        for (beside, wanted, how) in [(0, 20.0, "alone"), (1, 5.0, "beside a thread")] {
            let sheet = sheet(&sheets, &name(*bytes, beside));
            let us = |arm: &str| {
                Value::of(sheet.and_then(|sheet| middle(sheet, arm, "move_ns")).map(|ns| ns / US))
            };
            row.extend(["copy", "relocate", "swap"].map(us));
            for arm in ["relocate", "swap"] {
                let over =
                    sheet.and_then(|sheet| ratio(sheet, ("copy", "move_ns"), (arm, "move_ns"), bench.seed));
                row.push(Value::ratio(over));
                if *bytes == 64 << 20 || *bytes == 1 << 30 {
                    let what = format!("{} {arm} {how}, memcpy over it", size(*bytes));
                    finding.goals.push(Goal::within(what, "x", Bound::AtLeast(wanted), over));
                }
            }
        }
        table.rows.push(row);
    }
    let series = |arm: &str, beside: usize| {
        let point = |bytes: &usize| {
            let sheet = sheet(&sheets, &name(*bytes, beside))?;
            Some((*bytes as f64, middle(sheet, arm, "move_ns")? / US))
        };
        sizes.iter().filter_map(point).collect()
    };
    finding.figures.push(Figure {
        name: "douglas-moves".into(),
        title: "Contents moved from block to block".into(),
        x: Axis::Bytes("block size".into()),
        y: Axis::Log("µs".into()),
        series: vec![
            Series::line("memcpy", series("copy", 0)),
            Series::line("relocate", series("relocate", 0)),
            Series::line("swap", series("swap", 0)),
            Series::line("memcpy beside a thread", series("copy", 1)),
            Series::line("relocate beside a thread", series("relocate", 1)),
            Series::line("swap beside a thread", series("swap", 1)),
        ],
    });
    finding.tables.push(table);
    finding.keep(&sheets);
}

/// A list of four million items, one by one and in one batch.
fn lists(bench: &mut Bench<'_>, finding: &mut Finding) {
    const BATCH: &str = "vellum, one batch";
    let nodes = bench.scale.pick(4_000_000, 4_000_000, 10_000usize);
    let rounds = bench.scale.pick(9, 3, 1);
    let params = |method: &str| [("method", method.to_owned()), ("nodes", nodes.to_string())];
    let mut arms = bench.arms_of_peers("list", &params("single"));
    if let Some(vellum) = bench.peer(VELLUM) {
        let launch = bench.launch(Some(vellum), "list", &params("batch"));
        arms.push(Arm { label: BATCH.to_owned(), launch });
    }
    let sheets = bench.campaign(&[cell("list", rounds, arms)]);
    let sheet = &sheets[0];
    let names: Vec<&str> = bench.peers().iter().map(|peer| peer.name).collect();
    let ms = |arm: &str, metric: &str| Value::of(middle(sheet, arm, metric).map(|ns| ns / MS));
    let over =
        |arm: &str, metric: &str| Value::ratio(ratio(sheet, (arm, metric), (BATCH, metric), bench.seed));
    finding.tables.push(table_by(
        &format!("A list of {nodes} items of 16 bytes: ms"),
        &[&names[..], &[BATCH]].concat(),
        &[
            ("allocator", "allocator", &|arm| Value::text(*arm)),
            ("alloc_ms", "malloc", &|arm| ms(arm, "alloc_ns")),
            ("build_ms", "malloc|and write", &|arm| ms(arm, "build_ns")),
            ("free_ms", "free", &|arm| ms(arm, "free_ns")),
            ("total_ms", "all", &|arm| ms(arm, "total_ns")),
            ("alloc_over_batch", "/ batch|malloc [95 %]", &|arm| over(arm, "alloc_ns")),
            ("build_over_batch", "|and write [95 %]", &|arm| over(arm, "build_ns")),
            ("total_over_batch", "|all [95 %]", &|arm| over(arm, "total_ns")),
        ],
    ));
    finding
        .notes
        .extend([GLIBC, VELLUM].iter().filter_map(|arm| control(sheet, arm, "total_ns", bench.seed)));
    let best = fastest(sheet, &names, "total_ns");
    let over = best.and_then(|best| ratio(sheet, (best, "total_ns"), (BATCH, "total_ns"), bench.seed));
    let what = format!("the list one by one ({}) over one batch", best.unwrap_or("nobody"));
    finding.goals.push(Goal::within(what, "x", Bound::AtLeast(2.0), over));
    let alloc = ratio(sheet, (GLIBC, "alloc_ns"), (BATCH, "alloc_ns"), bench.seed);
    if let Some(alloc) = alloc {
        finding.notes.push(format!(
            "published: 100,000 times faster in a batch; here the allocation alone is {} times as fast as glibc's one by one: \
             every item's page must still be had, and its address written, which the claim leaves out",
            vellum_measure::short(alloc.estimate)
        ));
    }
    let points = |metric: &str| {
        let arms = names.iter().copied().chain([BATCH]).enumerate();
        arms.filter_map(|(place, arm)| Some((place as f64, middle(sheet, arm, metric)? / MS))).collect()
    };
    finding.figures.push(Figure {
        name: "douglas-list".into(),
        title: "A list of items, one by one and in one batch".into(),
        x: Axis::Names(
            "allocator".into(),
            names.iter().map(|n| (*n).to_owned()).chain(["batch".into()]).collect(),
        ),
        y: Axis::Linear("ms".into()),
        series: vec![
            Series::bars("malloc", points("alloc_ns")),
            Series::bars("malloc and write", points("build_ns")),
            Series::bars("free", points("free_ns")),
        ],
    });
    finding.keep(&sheets);
}

/// The arm with the least median, Vellum's own left out.
fn fastest<'n>(sheet: &Sheet, names: &[&'n str], metric: &str) -> Option<&'n str> {
    let others = names.iter().copied().filter(|name| *name != VELLUM);
    let timed = others.filter_map(|name| Some((name, middle(sheet, name, metric)?)));
    timed.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}
