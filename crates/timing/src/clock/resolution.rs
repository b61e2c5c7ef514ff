//! Finds a clock's step (its resolution) by experiment.
//!
//! The smallest number that a clock can express is not its step: `CLOCK_MONOTONIC` counts nanoseconds but may
//! advance by ten at a time, and a time-stamp counter by 26 ticks. The clock is therefore read in pairs, with
//! a little more work between the two readings each time. The differences gather at multiples of the step:
//!
//! ```text
//! count  ▂                                       ▂ few: repeated readings, one tick apart
//!        │        █          █▄         ▆         █▄ a cluster: values rounded to a nanosecond
//!        └┬─ ─ ─ ─┬──────────┬──────────┬──▶ difference
//!         1      26         52         78        step = 26
//! ```
//!
//! Rare values are dropped first: on a busy machine a stray reading can fall anywhere, and would widen the
//! cluster beside it. The other values form clusters with their neighbours; the most frequent value of a
//! cluster represents it. The step is the most frequent distance between neighbouring clusters, and between
//! zero and the first one. The smallest distance would be wrong: rounding moves a cluster's value by one
//! either way. If a cluster is wider than rounding explains, the clock takes any value: its step is one tick.
//!
//! Each process finds the step once for each kind of clock, so all clocks of a kind have the same step.

use super::{Clock, ClockKind};
use std::sync::OnceLock;

/// The number of pairs of readings.
const PAIRS: usize = 4096;
/// The number of different amounts of work between the readings of a pair.
const DELAYS: usize = 32;
/// Values that occur less than once in this many pairs are dropped.
const SHARE: usize = 200;
/// The counter may make two readings within one step differ by this many ticks, so that no two are the same.
const GUARD: u64 = 1;
/// Rounding to whole ticks spreads one step over this many values.
const ROUNDING: u64 = 2;

/// The step in ticks, at least 1.
pub(super) fn step_ticks(clock: &Clock) -> u64 {
    static FOUND: [OnceLock<u64>; ClockKind::ALL.len()] = [const { OnceLock::new() }; ClockKind::ALL.len()];
    // `kind as usize` numbers the kinds in order of declaration, which is the order of `ALL`.
    *FOUND[clock.kind as usize].get_or_init(|| step_of(differences(clock)))
}

/// The differences between the clock's two readings, for all pairs.
fn differences(clock: &Clock) -> Vec<u64> {
    let mut differences = vec![0u64; PAIRS];
    for (index, difference) in differences.iter_mut().enumerate() {
        let first = clock.stamp();
        for turn in 0..index % DELAYS {
            std::hint::black_box(turn);
        }
        *difference = clock.stamp().saturating_sub(first);
    }
    differences
}

/// Neighbouring values.
struct Cluster {
    first: u64,
    last: u64,
    /// The most frequent value, and how often it occurs.
    mode: (u64, usize),
}

fn step_of(mut differences: Vec<u64>) -> u64 {
    differences.retain(|&difference| difference > GUARD);
    differences.sort_unstable();
    let enough = differences.len() / SHARE;
    let mut clusters: Vec<Cluster> = Vec::new();
    for same in differences.chunk_by(|a, b| a == b).filter(|same| same.len() > enough) {
        let (value, count) = (same[0], same.len());
        match clusters.last_mut() {
            Some(cluster) if value - cluster.last < ROUNDING => {
                cluster.last = value;
                if count > cluster.mode.1 {
                    cluster.mode = (value, count);
                }
            }
            _ => clusters.push(Cluster { first: value, last: value, mode: (value, count) }),
        }
    }
    if clusters.iter().any(|cluster| cluster.last - cluster.first > ROUNDING) {
        return 1;
    }
    let modes: Vec<u64> = clusters.iter().map(|cluster| cluster.mode.0).collect();
    let mut gaps: Vec<u64> =
        std::iter::once(0).chain(modes.iter().copied()).zip(&modes).map(|(a, b)| b - a).collect();
    // The order is falling, so that of equally frequent values the last and smallest is taken.
    gaps.sort_unstable_by(|a, b| b.cmp(a));
    gaps.chunk_by(|a, b| a == b).max_by_key(|same| same.len()).map_or(1, |same| same[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_the_most_frequent_distance() {
        let times = |counts: &[(u64, usize)]| -> Vec<u64> {
            counts.iter().flat_map(|(value, count)| std::iter::repeat_n(*value, *count)).collect()
        };
        // One in twenty readings is a tick off, on either side.
        let quantum = [(1, 50), (25, 20), (26, 500), (52, 300), (77, 20), (78, 200), (1040, 3)];
        let rounded = (0..2000u32).map(|i| (f64::from(2 + i % 4) * 10.015 + f64::from(i % 7) / 7.0) as u64);
        let multiples: Vec<_> = (2..12).flat_map(|ten| [(10 * ten, 350), (10 * ten + 1, 60)]).collect();
        // Far out, 10.015 ns appear as 430 or 431: one cluster's value in ten is lower by one.
        let far = [401, 411, 421, 430, 441, 451, 461, 471, 481, 491].map(|value| (value, 400));
        for (what, seen, step) in [
            ("a processor that advances by 26", times(&quantum), 26),
            ("rounding to nanoseconds", rounded.collect(), 10),
            (
                "every value from 18 to 400 beside multiples",
                [times(&multiples), (18..400).collect()].concat(),
                10,
            ),
            ("rounding that moves single multiples", times(&far), 10),
            ("every value", (0..4096).map(|i| 18 + i % 40).collect(), 1),
            ("one value only: a distance from zero", vec![4_000_000; 100], 4_000_000),
            ("only zeros", vec![0; 100], 1),
            ("nothing", Vec::new(), 1),
        ] {
            assert_eq!(step_of(seen), step, "{what}");
        }
    }
}
