//! Douglas 2011, Figure 6: Vellum's malloc with its page layer on and off, over a random mix of sizes.
//!
//! "Off" is the same malloc without caching and huge pages, and with the program's own mappings left to
//! the kernel. The kernel then provides every page at a fault, as in the paper under the system's page
//! allocator. The table also has glibc.

use super::bench::Bench;
use super::work::{BIN_FIRST, BIN_LAST};
use crate::clock::UNIT;
use crate::finding::table_by;
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Value};
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

    let (metric, bins) = (|bin: u32| format!("bin_{bin}_cycles"), Vec::from_iter(BIN_FIRST..=BIN_LAST));
    let of = |bin: u32, arm: &str| Value::of(middle(sheet, arm, &metric(bin)));
    let over =
        |bin: u32, above: &str| ratio(sheet, (above, &metric(bin)), (VELLUM, &metric(bin)), bench.seed);
    let control = |bin: u32| over(bin, &twin(VELLUM)).map(|control| control.estimate);
    let table = table_by(
        &format!("Figure 6: malloc, writing one byte of every page, free; {UNIT} a block, by its size"),
        &bins,
        &[
            ("from_bytes", "block from", &|bin| Value::text(size(1 << bin))),
            ("off", "page layer|off", &|bin| of(*bin, OFF)),
            ("on", "page layer|on", &|bin| of(*bin, VELLUM)),
            ("glibc", "|glibc", &|bin| of(*bin, GLIBC)),
            ("off_over_on", "off / on|[95 %]", &|bin| Value::ratio(over(*bin, OFF))),
            ("glibc_over_on", "glibc / on|[95 %]", &|bin| Value::ratio(over(*bin, GLIBC))),
            ("control", "on / on|(A/A)", &|bin| Value::of(control(*bin))),
        ],
    );
    let points = |above: &str| {
        let point = |bin: &u32| Some((f64::from(1u32 << bin), over(*bin, above)?.estimate));
        bins.iter().filter_map(point).collect()
    };
    let goal = |bin: &u32| {
        let what = format!("from {} off / on", size(1 << bin));
        Goal::within(what, "x", Bound::AtLeast(1.0 - NOISE), over(*bin, OFF))
    };
    let mut goals: Vec<Goal> = bins.iter().map(goal).collect();
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
                Series::line("over the layer off", points(OFF)),
                Series::line("over glibc", points(GLIBC)),
                Series::published("published (from the text)", published),
            ],
        }], ..Finding::new("mix", "This malloc with the page layer on and off", "Figure 6", "Published: twice as fast for very small blocks, slowly declining towards 128 to 256 KB, in a random mix of \
            very small and very big blocks (a plot; the text gives these points).", vec!["small blocks are cut from 64 KiB units, so the page layer reaches them only through the units' frames".into()]) };
    finding.keep(&sheets);
    finding
}
