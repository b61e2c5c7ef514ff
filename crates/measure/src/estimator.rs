//! Estimators: robust functions that reduce many values, a few of them outliers, to one figure.
//!
//! Three estimators are in use:
//!
//! - **The median** requires only that half of the values are undisturbed. The median suits small numbers of
//!   values, such as runs of whole processes.
//! - **The trimmed mean** is the average of the values that remain after all [layers](crate::Layers) of
//!   outliers (values outside mean ± 2σ) are removed. Values within `floor` of the mean (two steps of the
//!   clock) are never removed. On timings, which have a sharp peak and a long tail, it varies as little
//!   between runs as the median. With a coarse clock the trimmed mean shows differences smaller than the
//!   clock's step; the median does not, because it is one of the clock's values.
//! - **A low quantile** is the estimator of absolute times: disturbances only lengthen timings, so the low
//!   end shows the program itself. Between runs, the 0.1 quantile varies least for programs limited by the
//!   processor, the 0.01 quantile for programs limited by memory.
//!
//! Resampling needs the estimates of thousands of random drawings from one series. Each drawing has some
//! values several times and others never, so it is stored as a count for each of the sorted values.
//!
//! Invariant: all estimators are equivariant. Adding c to the values adds c to the estimate; negating them
//! negates the estimate (the quantile p becomes the quantile 1 − p).
//!
//! Source: the plots of Bates 1999 leave out one layer for each option `-o`. Departure: here layers are
//! removed until none is left.

use crate::LAYER_DEVIATIONS;
use serde::Serialize;

/// An estimator of one figure for many values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// The value below which this share (0 to 1) of the values lies, interpolated as in
    /// [`quantile`](crate::quantile()).
    Quantile(f64),
    /// The mean of the values left after all layers of outliers are removed.
    Trimmed {
        /// Values closer than this to the mean are not outliers; in the unit of the values, 0 or more.
        floor: f64,
    },
}

impl Estimator {
    /// The middle.
    pub const MEDIAN: Self = Self::Quantile(0.5);

    /// The estimate of the values.
    ///
    /// `None` if there are none, one is not finite, or the estimator's parameter is out of range.
    #[must_use]
    pub fn of(self, values: &[f64]) -> Option<f64> {
        let sorted = self.sorted(values)?;
        Some(self.of_drawing(&sorted, &vec![1; sorted.len()], sorted.len()))
    }

    /// The values sorted, or `None` if they have no estimate.
    pub(crate) fn sorted(self, values: &[f64]) -> Option<Vec<f64>> {
        let sensible = match self {
            Self::Quantile(share) => (0.0..=1.0).contains(&share),
            Self::Trimmed { floor } => floor >= 0.0,
        };
        if !sensible || values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(sorted)
    }

    /// The estimate of a drawing of `drawn` values (at least one) that holds `sorted[i]` `counts[i]` times.
    pub(crate) fn of_drawing(self, sorted: &[f64], counts: &[u32], drawn: usize) -> f64 {
        match self {
            Self::Quantile(share) => quantile(sorted, counts, share * (drawn - 1) as f64),
            Self::Trimmed { floor } => trimmed(sorted, counts, floor),
        }
    }
}

/// The value at a place of the drawing, counted from 0, interpolated linearly between two neighbours.
fn quantile(sorted: &[f64], counts: &[u32], place: f64) -> f64 {
    let below = place.floor() as u64;
    let mut passed = 0;
    let mut drawn = sorted.iter().zip(counts).filter(|(_, count)| **count > 0);
    let found = drawn.by_ref().find_map(|(value, count)| {
        passed += u64::from(*count);
        (passed > below).then_some(*value)
    });
    // Places lie within the drawing: `found` exists, and a next value exists if its weight is not zero.
    let low = found.unwrap_or(sorted[sorted.len() - 1]);
    let weight = place - below as f64;
    if weight == 0.0 || passed > below + 1 {
        return low;
    }
    drawn.next().map_or(low, |(high, _)| low + (high - low) * weight)
}

/// The mean of the values left when none lies outside mean ± 2σ, or mean ± `floor` if that is wider. The
/// values are sorted, so those left are a stretch.
fn trimmed(sorted: &[f64], counts: &[u32], floor: f64) -> f64 {
    // Sums are of distances from a central value, so that they lose no digits, and equal values sum to zero.
    let origin = sorted[sorted.len() / 2];
    let (mut from, mut to) = (0, sorted.len());
    loop {
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (value, count) in sorted[from..to].iter().zip(&counts[from..to]) {
            let (weight, apart) = (f64::from(*count), value - origin);
            n += weight;
            sum += weight * apart;
            squares += weight * apart * apart;
        }
        let mean = sum / n;
        let variance = (squares - sum * mean).max(0.0) / (n - 1.0).max(1.0);
        let reach = (LAYER_DEVIATIONS * variance.sqrt()).max(floor);
        let inside = |value: &f64| (value - origin - mean).abs() <= reach;
        let low = sorted[from..to].iter().position(inside);
        let high = sorted[from..to].iter().rposition(inside);
        // Only rounding leaves nothing inside: the remaining values differ in their last digits only.
        let (Some(low), Some(high)) = (low, high) else { return origin + mean };
        let stretch = (from + low, from + high + 1);
        let beyond = counts[from..stretch.0].iter().chain(&counts[stretch.1..to]).any(|count| *count > 0);
        if !beyond {
            return origin + mean;
        }
        (from, to) = stretch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layers, quantile as quantile_of};
    use proptest::prelude::*;

    const TRIMMED: Estimator = Estimator::Trimmed { floor: 0.0 };

    #[test]
    fn values_within_the_floor_are_kept() {
        // Nineteen values at 100 and one at 101: beyond two deviations, but only one step of the clock away.
        let mut values = vec![100.0; 19];
        values.push(101.0);
        assert_eq!(TRIMMED.of(&values), Some(100.0));
        assert_eq!(Estimator::Trimmed { floor: 1.0 }.of(&values), Some(100.05));
    }

    #[test]
    fn invalid_values_have_no_estimate() {
        for values in [&[][..], &[1.0, f64::NAN], &[f64::INFINITY]] {
            assert_eq!(TRIMMED.of(values), None);
            assert_eq!(Estimator::MEDIAN.of(values), None);
        }
        assert_eq!(Estimator::Quantile(1.5).of(&[1.0]), None);
        assert_eq!(Estimator::Trimmed { floor: f64::NAN }.of(&[1.0]), None);
    }

    fn timings() -> impl Strategy<Value = Vec<f64>> {
        proptest::collection::vec(prop_oneof![9 => 0.0f64..10.0, 1 => -1e4f64..1e4], 1..120)
    }

    proptest! {
        #[test]
        fn the_trimmed_mean_is_the_mean_after_layers(values in timings()) {
            let kept = Layers::peel_all(&values).keep(&values);
            let want = kept.iter().sum::<f64>() / kept.len() as f64;
            prop_assert!((TRIMMED.of(&values).unwrap() - want).abs() < 1e-7, "{want}");
        }

        #[test]
        fn quantiles_are_the_usual_ones(values in timings(), share in 0.0f64..=1.0) {
            let want = quantile_of(&values, share).unwrap();
            prop_assert!((Estimator::Quantile(share).of(&values).unwrap() - want).abs() < 1e-9);
        }

        #[test]
        fn counts_stand_for_repetitions(
            pairs in proptest::collection::vec((-100.0f64..100.0, 0u32..4), 1..60), share in 0.0f64..=1.0,
        ) {
            let drawn: Vec<f64> = pairs.iter().flat_map(|(v, count)| vec![*v; *count as usize]).collect();
            prop_assume!(!drawn.is_empty());
            let mut sorted = pairs;
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (values, counts): (Vec<f64>, Vec<u32>) = sorted.into_iter().unzip();
            for estimator in [TRIMMED, Estimator::Trimmed { floor: 30.0 }, Estimator::Quantile(share)] {
                let got = estimator.of_drawing(&values, &counts, drawn.len());
                prop_assert!((got - estimator.of(&drawn).unwrap()).abs() < 1e-9, "{estimator:?}");
            }
        }
    }
}
