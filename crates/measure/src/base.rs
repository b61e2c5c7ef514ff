//! The base of a clock (the duration that an empty timing shows), its step, and the batch for short
//! operations.
//!
//! Two successive readings of a clock differ even if nothing lies between them. The smallest such difference,
//! the *base*, is part of every observation and is subtracted ([`Base::subtract`]). The *step* is the clock's
//! resolution: the smallest positive number among the empty timings and their differences.
//!
//! An operation is refused if the base or rounding would be a large part of its time. [`Base::batch_for`]
//! returns the number of repetitions (the *batch*) that together take long enough.
//!
//! Invariants: `min <= mean <= max`; `step > 0`; all times are nanoseconds.
//!
//! Source: Bates 1999, section "The Measurement Process": 1000 empty timings, of which the minimum is the
//! base. The step is not in the paper.

use serde::{Deserialize, Serialize};

use crate::{Sample, Unit};

/// The empty timings of one clock. All times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// The clock's name, such as `tsc`.
    pub clock: String,
    /// The number of empty timings.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest; subtracted from observations.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their standard deviation.
    pub std: f64,
    /// The clock's resolution.
    pub step: f64,
}

/// An operation must last at least this many of the clock's steps, so that rounding is at most 10 % of it …
pub const STEPS_MIN: f64 = 10.0;
/// … plus at least this many times the base, so that the subtracted base is not the larger part.
pub const BASES_MIN: f64 = 1.0;
/// The shortest possible operation of a processor, in nanoseconds: shorter ones get a batch for this length.
pub const OPERATION_NS_MIN: f64 = 0.1;
/// Smaller differences, in nanoseconds, come from converting a counter's steps. No clock is finer.
const STEP_NS_MIN: f64 = 1e-3;

impl Base {
    /// The base of `clock` from empty timings, in nanoseconds.
    ///
    /// `None` if there are no timings, if one is negative or not a number, or if all are zero. A clock with
    /// only zeros is too coarse to show its step here: find the step by waiting for the clock to move, and
    /// use [`Base::with_step`].
    #[must_use]
    pub fn of(clock: impl Into<String>, empty: &Sample) -> Option<Self> {
        Self::with_step(clock, empty, smallest_difference(empty.values())?)
    }

    /// The base of a clock whose step (nanoseconds, positive) was found elsewhere.
    #[must_use]
    pub fn with_step(clock: impl Into<String>, empty: &Sample, step: f64) -> Option<Self> {
        let stat = empty.stat()?;
        let valid = stat.min >= 0.0 && step > 0.0 && step.is_finite();
        valid.then(|| Self {
            clock: clock.into(),
            n: stat.n,
            mean: stat.mean,
            min: stat.min,
            max: stat.max,
            std: stat.std,
            step,
        })
    }

    /// `ns` less the base. The result can be negative.
    #[must_use]
    pub fn subtract(&self, ns: f64) -> f64 {
        ns - self.min
    }

    /// The share of the empty timings at the most frequent one, give or take `steps` of the clock: 0 to 1.
    ///
    /// `empty` are the timings of this base. `None` if there are none or one is not a number.
    #[must_use]
    pub fn mode_share(&self, empty: &Sample, steps: u32) -> Option<f64> {
        empty.stat()?;
        // The bins are whole numbers of steps, so that the rounding of a value to nanoseconds does not
        // matter.
        let mut bins: Vec<i64> = empty.values().iter().map(|ns| (ns / self.step).round() as i64).collect();
        bins.sort_unstable();
        let same = |run: &&[i64]| run.len();
        let mode = bins.chunk_by(|a, b| a == b).max_by_key(same)?[0];
        let near = bins.iter().filter(|bin| bin.abs_diff(mode) <= u64::from(steps)).count();
        Some(near as f64 / bins.len() as f64)
    }

    /// The shortest observation (nanoseconds, base subtracted) that this clock measures precisely enough.
    #[must_use]
    pub fn shortest_ns(&self) -> f64 {
        STEPS_MIN * self.step + BASES_MIN * self.min
    }

    /// The batch for an operation of `operation_ns` (base subtracted): how many operations make a long enough
    /// observation, `None` if one is enough.
    #[must_use]
    pub fn batch_for(&self, operation_ns: f64) -> Option<u64> {
        if operation_ns >= self.shortest_ns() {
            return None;
        }
        // `max` also replaces a value that is not a number.
        Some((self.shortest_ns() / operation_ns.max(OPERATION_NS_MIN)).ceil() as u64)
    }

    /// "10.0 ns (mean 10.2 ns, max 8.61 µs, std 3.00 ns, n 1,000), step 10.0 ns".
    #[must_use]
    pub fn describe(&self) -> String {
        let ns = |value| Unit::Nanoseconds.scaled(value);
        let n = Unit::Count.scaled(self.n as f64);
        let (min, mean, max) = (ns(self.min), ns(self.mean), ns(self.max));
        format!("{min} (mean {mean}, max {max}, std {}, n {n}), step {}", ns(self.std), ns(self.step))
    }
}

/// The smallest positive value, or difference of two: a timing is itself a difference of two stamps.
fn smallest_difference(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.push(0.0);
    sorted.sort_by(f64::total_cmp);
    let differences = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    differences.filter(|difference| *difference >= STEP_NS_MIN).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn base(values: &[f64]) -> Base {
        Base::of("tsc", &Sample::from(values.to_vec())).unwrap()
    }

    #[test]
    fn the_step_is_the_smallest_positive_time() {
        // As measured: CLOCK_MONOTONIC gives 20 or 30 ns; the counter always gives 26 cycles of 0.3846 ns.
        assert_eq!(base(&[20.0, 30.0, 20.0, 30.0]).step, 10.0);
        assert_eq!(base(&[10.0, 10.0, 10.0]).step, 10.0);
        assert_eq!(base(&[0.0, 0.0, 40.0]).step, 40.0);
        // Two roundings of the same number of cycles are one value.
        assert_eq!(base(&[10.0, 10.0 + 1e-9]).step, 10.0);
    }

    #[test]
    fn empty_timings_of_zero_show_no_step() {
        let still = Sample::from(vec![0.0; 5]);
        assert_eq!(Base::of("coarse", &still), None);
        let coarse = Base::with_step("coarse", &still, 4e6).unwrap();
        assert_eq!((coarse.min, coarse.batch_for(1000.0)), (0.0, Some(40_000)));
        assert_eq!(Base::with_step("coarse", &still, 0.0), None);
        assert_eq!(Base::of("broken", &Sample::from(vec![-1.0, 2.0])), None);
        assert_eq!(Base::of("nothing", &Sample::new(0)), None);
    }

    #[test]
    fn short_operations_get_a_batch() {
        let base = base(&[20.0, 30.0]);
        assert_eq!(base.shortest_ns(), 120.0);
        assert_eq!(base.batch_for(120.0), None);
        assert_eq!(base.batch_for(119.0), Some(2));
        assert_eq!(base.batch_for(5.0), Some(24));
        for nothing in [0.0, -3.0, f64::NAN] {
            assert_eq!(base.batch_for(nothing), Some(1200));
        }
    }

    #[test]
    fn the_mode_is_counted_with_its_neighbours() {
        // The source's last figure: of 1000, five at 12, one at 8, the rest at 6 or 7.
        let values = [vec![6.0; 900], vec![7.0; 94], vec![8.0], vec![12.0; 5]].concat();
        let sample = Sample::from(values);
        let base = Base::of("builtin", &sample).unwrap();
        assert_eq!((base.min, base.step), (6.0, 1.0));
        assert_eq!(base.mode_share(&sample, 0), Some(0.9));
        assert_eq!(base.mode_share(&sample, 1), Some(0.994));
        assert_eq!(base.mode_share(&Sample::new(0), 1), None);
    }

    proptest! {
        #[test]
        fn the_batch_is_long_enough_and_no_larger_than_needed(
            min in 1.0f64..1000.0, step in 0.5f64..100.0, operation in 0.2f64..5000.0,
        ) {
            let base = Base::with_step("any", &Sample::from(vec![min]), step).unwrap();
            match base.batch_for(operation) {
                None => prop_assert!(operation >= base.shortest_ns()),
                Some(batch) => {
                    prop_assert!(batch >= 2 && batch as f64 * operation >= base.shortest_ns() * (1.0 - 1e-12));
                    prop_assert!((batch - 1) as f64 * operation < base.shortest_ns());
                }
            }
        }
    }
}
