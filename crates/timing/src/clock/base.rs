//! Measures the base, the time of an empty timing, which is subtracted from measured times.
//!
//! ```text
//!   first = stamp()   ┐
//!   second = stamp()  ┘ n times, all of them kept ──▶ Series (starts, walls) ──▶ Sample ──▶ Base
//! ```
//!
//! The loop only stamps and stores, into memory that was touched before. Its first iterations are discarded:
//! they bring the code and the clock's page into the caches.
//!
//! Source: Bates 1999, section "The Measurement Process": 1000 empty timings, whose minimum is subtracted.
//! Departure: the minimum is taken with the precision of the clock's step. Some processors advance their
//! counter by many ticks at once (a step), but two readings within a step may still differ by one tick. A
//! timing of one step may then come out as one tick, or as a step minus one tick. One such pair in a thousand
//! would make the base random. Timings below half a step are therefore ignored, and the base is the most
//! frequent of those within half a step above the smallest. All timings stay in the sample.

use super::{Anchor, Clock, ClockError};
use std::hint::black_box;
use vellum_measure::{Base, Observation, Sample, Series};

/// The usual number of empty timings for a base, as in the source.
pub const BASE_COUNT: usize = 1000;
/// The fewest empty timings for a base.
pub const BASE_COUNT_MIN: usize = 10;
/// The most empty timings for a base.
pub const BASE_COUNT_MAX: usize = 10_000_000;
/// The turns discarded first.
const WARM_UP: usize = 200;
/// The name of a base's series in the source.
const NAME: &str = "BASE";

/// Measures the base of an open clock, as a series named `BASE` with the start of each timing. Its `base` is
/// set, so that [`Series::walls`] subtracts it.
///
/// # Errors
/// If `n` is outside [`BASE_COUNT_MIN`] to [`BASE_COUNT_MAX`].
pub fn measure_base_on(clock: &Clock, n: usize) -> Result<Series, ClockError> {
    if !(BASE_COUNT_MIN..=BASE_COUNT_MAX).contains(&n) {
        return Err(ClockError::BaseCount(n));
    }
    let mut pairs = vec![(1u64, 1u64); n];
    black_box(pairs.as_mut_slice());
    stamp_pairs(clock, &mut pairs[..WARM_UP.min(n)]);
    let before = Anchor::now(clock);
    stamp_pairs(clock, &mut pairs);
    let after = Anchor::now(clock);
    let observation = |&(first, second): &(u64, u64)| Observation {
        start_ns: before.place(&after, clock, first),
        wall_ns: clock.between(first, second),
        ..Observation::default()
    };
    let observations: Vec<Observation> = pairs.iter().map(observation).collect();
    let base = base_of(clock, &observations.iter().map(|one| one.wall_ns).collect());
    Ok(Series {
        name: NAME.to_owned(),
        labels: vec![clock.kind().name().to_owned()],
        clock: Some(clock.kind().name().to_owned()),
        base: Some(base),
        observations,
        ..Series::default()
    })
}

/// Not inlined, so that none of the caller's code gets between the stamps.
#[inline(never)]
fn stamp_pairs(clock: &Clock, pairs: &mut [(u64, u64)]) {
    for pair in pairs {
        let first = clock.stamp();
        let second = clock.stamp();
        *pair = (first, second);
    }
}

/// The base of `clock` from at least one empty timing, in nanoseconds.
pub(crate) fn base_of(clock: &Clock, empty: &Sample) -> Base {
    let step = clock.step_ns();
    let Some(mut base) = Base::with_step(clock.kind().name(), empty, step) else {
        unreachable!("timings by stamps are finite and never negative, and a step is positive")
    };
    let mut believed: Vec<f64> = empty.values().iter().copied().filter(|&ns| ns >= step / 2.0).collect();
    believed.sort_unstable_by(f64::total_cmp);
    let near = believed.first().map_or(0, |&least| believed.partition_point(|&ns| ns < least + step / 2.0));
    let frequent = believed[..near].chunk_by(|a, b| a == b).max_by_key(|same| same.len());
    base.min = frequent.map_or(base.min, |same| same[0]).min(base.mean);
    base
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockKind;

    #[test]
    fn a_base_for_every_clock() {
        for clock in crate::clock::tests::all() {
            let series = measure_base_on(&clock, 500).unwrap();
            let base = series.base.as_ref().unwrap();
            assert_eq!((base.clock.as_str(), base.n, series.walls().len()), (clock.kind().name(), 500, 500));
            assert!(base.min >= 0.0 && base.min <= base.mean && base.mean <= base.max, "{base:?}");
            assert!(base.step > 0.0 && series.name == "BASE");
        }
    }

    #[test]
    fn starts_follow_one_another_and_their_number_is_limited() {
        let clock = Clock::open(ClockKind::Monotonic).unwrap();
        let starts = measure_base_on(&clock, 1000).unwrap().starts().unwrap();
        assert!(starts.windows(2).all(|pair| pair[0] <= pair[1]));
        for n in [0, BASE_COUNT_MIN - 1, BASE_COUNT_MAX + 1] {
            let error = measure_base_on(&clock, n).unwrap_err();
            assert_eq!(error, ClockError::BaseCount(n));
            assert!(error.to_string().contains("10000000"));
        }
    }

    #[test]
    fn a_pair_within_one_step_is_no_minimum() {
        let mut clock = Clock::open(ClockKind::Monotonic).unwrap();
        clock.step_ticks = 26;
        let base = base_of(&clock, &Sample::from(vec![26.0, 1.0, 26.0, 52.0]));
        assert_eq!((base.min, base.step, base.max), (26.0, 26.0, 52.0));
        let base = base_of(&clock, &Sample::from(vec![25.0, 26.0, 26.0, 51.0, 52.0, 52.0, 52.0]));
        assert_eq!(base.min, 26.0, "a tick less than a step is the step");
        let base = base_of(&clock, &Sample::from(vec![0.0, 0.0, 0.0]));
        assert_eq!(base.min, 0.0, "a clock too coarse to see itself");
    }
}
