//! A sample: values in order of observation, and the five figures that describe them.
//!
//! The benchmark of Bates 1999 makes three calls, which have the same names here: `Sample.new(n)`, `add` in
//! the loop, and `stat()` for count, mean, minimum, maximum and standard deviation.
//!
//! Invariants:
//! - all values are kept in order; a sample neither sorts nor drops values;
//! - up to the capacity, `add` neither allocates nor touches a fresh page, so filling a sample disturbs the
//!   measured loop by one store only.
//!
//! Source: Bates 1999, section "The Measurement Process". The paper does not give the divisor of the
//! deviation. We divide by n − 1; the deviation of a single value is 0, as in the paper.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

/// Values in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    values: Vec<f64>,
}

/// The five figures of a sample: count, mean, minimum, maximum and standard deviation, all but the count in
/// its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stat {
    /// The number of values.
    pub n: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The standard deviation, over n − 1; 0 for one value.
    pub std: f64,
}

impl Sample {
    /// An empty sample with space for `capacity` values, in pages that are already resident.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        // Values other than zero, passed through `black_box`, make the pages resident. In fresh pages the
        // first value of each page would add a fault's time to the next observation.
        Self { values: touched(capacity, 1.0) }
    }

    /// Appends one value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.values.push(value);
    }

    /// All values, in order.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The five figures, or `None` if there is no value or one is not finite.
    #[must_use]
    pub fn stat(&self) -> Option<Stat> {
        Stat::of(&self.values)
    }
}

impl From<Vec<f64>> for Sample {
    fn from(values: Vec<f64>) -> Self {
        Self { values }
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self { values: values.into_iter().collect() }
    }
}

impl Stat {
    /// The five figures of `values`. `None` if there is no value, one is not finite, or some are so large
    /// (10¹⁵⁰) that their squares overflow.
    ///
    /// Two passes are made. The textbook sum of squares loses all digits if the deviation is small beside the
    /// mean, as for a quiet clock.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let n = values.len() as f64;
        // The division comes first, because the sum of finite values may overflow.
        let rough = values.iter().map(|value| value / n).sum::<f64>();
        let mean = rough + values.iter().map(|value| (value - rough) / n).sum::<f64>();
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let std = if values.len() == 1 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
        // Rounding must not put the mean outside the range of the values.
        let stat = Self { n: values.len() as u64, mean: mean.clamp(min, max), min, max, std };
        std.is_finite().then_some(stat)
    }
}

/// An empty vector whose memory is already resident. `value` must not be zero: memory with zeros may not be.
#[must_use]
pub fn touched<T: Clone>(capacity: usize, value: T) -> Vec<T> {
    let mut values = vec![value; capacity];
    black_box(values.as_mut_slice());
    values.clear();
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn closed_forms() {
        let sample: Sample = (1..=9).map(f64::from).collect();
        let stat = sample.stat().unwrap();
        // 1..=n: mean (n + 1) / 2, variance over n − 1: n (n + 1) / 12.
        assert_eq!((stat.n, stat.mean, stat.min, stat.max), (9, 5.0, 1.0, 9.0));
        assert!((stat.std - 7.5f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn one_value_has_no_deviation() {
        let stat = Stat::of(&[807.0]).unwrap();
        assert_eq!(stat, Stat { n: 1, mean: 807.0, min: 807.0, max: 807.0, std: 0.0 });
    }

    #[test]
    fn invalid_values_have_no_figures() {
        assert_eq!(Sample::new(10).stat(), None);
        assert_eq!(Stat::of(&[1.0, f64::NAN]), None);
        assert_eq!(Stat::of(&[1.0, f64::INFINITY]), None);
        assert_eq!(Stat::of(&[1e200, -1e200]), None);
    }

    #[test]
    fn a_small_deviation_beside_a_large_mean_is_seen() {
        let values: Vec<f64> = [4.0, 7.0, 13.0, 16.0].iter().map(|v| v + 1e9).collect();
        let stat = Stat::of(&values).unwrap();
        assert_eq!((stat.mean, stat.std), (1e9 + 10.0, 30f64.sqrt()));
    }

    proptest! {
        #[test]
        fn the_mean_lies_within(values in prop::collection::vec(-1e150f64..1e150, 1..20)) {
            let stat = Stat::of(&values).unwrap();
            prop_assert!(stat.min <= stat.mean && stat.mean <= stat.max);
        }
    }
}
