//! Douglas 2011, Figure 6: Vellum's malloc with its page layer on and off, over a random mix of sizes.
//!
//! "Off" is the same malloc without caching and huge pages, and with the program's own mappings left to the
//! kernel. Every extent then comes from the kernel by faults, as in the paper under the system's page
//! allocator. The table also has glibc.

use super::bench::Bench;
use super::work::{BIN_FIRST, BIN_LAST};
use crate::clock::UNIT;
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use vellum_campaign::cells::{cell, middle, ratio, twin};
use vellum_campaign::{Arm, GLIBC, VELLUM};
use vellum_report::units::size;

const OFF: &str = "off";
const CELL: &str = "mix";
/// The environment that disables the page layer.
const OFF_ENV: [(&str, &str); 3] =
    [("VELLUM_DECAY_MS", "0"), ("VELLUM_HUGE", "never"), ("VELLUM_MMAP", "off")];
/// Bound of the difference between two runs of the same program.
const NOISE: f64 = 0.02;

pub(super) fn run(bench: &mut Bench<'_>) -> Finding {
    let (rounds, steps) = bench.scale.pick((11, 100_000), (5, 6_000), (1, 300));
    let params = [("steps", usize::to_string(&steps)), ("seed", bench.seed.to_string())];
    let mut arms = Vec::new();
    for peer in bench.peers().iter().filter(|peer| peer.name == GLIBC || peer.name == VELLUM) {
        let launch = bench.launch(Some(peer), CELL, &params);
        arms.push(Arm { label: twin(peer.name), launch: launch.clone() });
        if peer.name == VELLUM {
            let mut off = launch.clone();
            off.env.extend(OFF_ENV.map(|(name, value)| (name.into(), value.into())));
            arms.push(Arm { label: OFF.to_owned(), launch: off });
        }
        arms.push(Arm { label: peer.name.to_owned(), launch });
    }
    let sheets = bench.campaign(&[cell(CELL, rounds, arms)]);
    let sheet = &sheets[0];

    let mut table = Table::new(
        &format!("Figure 6: malloc, writing one byte of every page, free; {UNIT} a block, by its size"),
        &[
            ("from_bytes", "block from"),
            ("off", "page layer|off"),
            ("on", "page layer|on"),
            ("glibc", "|glibc"),
            ("off_over_on", "off / on|[95 %]"),
            ("glibc_over_on", "glibc / on|[95 %]"),
            ("control", "on / on|(A/A)"),
        ],
    );
    let (mut goals, mut layer, mut system) = (Vec::new(), Vec::new(), Vec::new());
    for bin in BIN_FIRST..=BIN_LAST {
        let metric = format!("bin_{bin}_cycles");
        let of = |arm: &str| Value::of(middle(sheet, arm, &metric));
        let over = |above: &str| ratio(sheet, (above, &metric), (VELLUM, &metric), bench.seed);
        let (off, glibc, control) = (over(OFF), over(GLIBC), over(&twin(VELLUM)));
        table.rows.push(vec![
            Value::text(size(1 << bin)),
            of(OFF),
            of(VELLUM),
            of(GLIBC),
            Value::ratio(off),
            Value::ratio(glibc),
            Value::of(control.map(|control| control.estimate)),
        ]);
        let place = f64::from(1u32 << bin);
        layer.extend(off.map(|off| (place, off.estimate)));
        system.extend(glibc.map(|glibc| (place, glibc.estimate)));
        let what = format!("from {} off / on", size(1 << bin));
        goals.push(Goal::within(what, "x", Bound::AtLeast(1.0 - NOISE), off));
    }
    let cpu = |above: &str| ratio(sheet, (above, "cpu_ns"), (VELLUM, "cpu_ns"), bench.seed);
    goals.push(Goal::within("CPU time in all, off / on", "x", Bound::AtLeast(1.0), cpu(OFF)));
    goals.push(Goal::within("CPU time in all, glibc / on", "x", Bound::AtLeast(1.0 - NOISE), cpu(GLIBC)));
    // The paper's plot has no figures; its text gives the start of the line and its decline to this size.
    let published = vec![(f64::from(1 << BIN_FIRST), 2.0), (f64::from(256u32 << 10), 1.0)];
    let mut finding = Finding { tables: vec![table], goals, figures: vec![Figure {
            name: "douglas-figure6".into(),
            title: "Figure 6: speed-up by block size in a random mix".into(),
            x: Axis::Bytes("block size".into()),
            y: Axis::Log("times as fast with the page layer".into()),
            series: vec![
                Series::line("over the layer off", layer),
                Series::line("over glibc", system),
                Series::published("published (from the text)", published),
            ],
        }], ..Finding::new("mix", "This malloc with the page layer on and off", "Figure 6", "Published: twice as fast for very small blocks, slowly declining towards 128 to 256 KB, in a random mix of \
            very small and very big blocks (a plot; the text gives these points).", vec!["small blocks are cut from 64 KiB units, so the page layer reaches them only through the units' frames".into()]) };
    finding.keep(&sheets);
    finding
}
