//! The ratio of A to B, estimated from pairs of timings made one right after the other.
//!
//! The estimate is `exp(median(ln(a / b)))`. With logarithms, exchanging A and B gives exactly the
//! reciprocal. A few disturbed pairs hardly change a median.
//!
//! The interval comes from [resampling](resampled) the logarithms in blocks of neighbours. If A and B ran in
//! random order in each pair, pairs hardly depend on each other: which of the two was disturbed is random in
//! every pair. In a fixed order, neighbouring pairs depend on each other.

use crate::{Estimator, Interval, resampled};

/// The median ratio `a / b` over the pairs, in order of observation, with its interval.
///
/// `resamples` is the number of drawings (a thousand is enough). `None` if there are no pairs or no
/// resamples, or if a value is not a positive finite number.
#[must_use]
pub fn paired_ratio(pairs: &[(f64, f64)], resamples: usize, seed: u64) -> Option<Interval> {
    paired_ratio_by(Estimator::MEDIAN, pairs, resamples, seed)
}

/// The ratio by another estimator, which works on the natural logarithms; the floor of
/// [`Trimmed`](Estimator::Trimmed) is a logarithm too.
#[must_use]
pub fn paired_ratio_by(
    estimator: Estimator,
    pairs: &[(f64, f64)],
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    let usable = |v: f64| v.is_finite() && v > 0.0;
    if !pairs.iter().all(|(a, b)| usable(*a) && usable(*b)) {
        return None;
    }
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| a.ln() - b.ln()).collect();
    resampled(&logs, estimator, resamples, seed).map(Interval::exp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RESAMPLES: usize = 2000;
    const TRIMMED: Estimator = Estimator::Trimmed { floor: 0.0 };

    #[test]
    fn a_constant_ratio_has_no_width() {
        let pairs: Vec<(f64, f64)> = (1..=9).map(|i| (1.5 * f64::from(i), f64::from(i))).collect();
        for estimator in [Estimator::MEDIAN, TRIMMED] {
            let got = paired_ratio_by(estimator, &pairs, RESAMPLES, 1).unwrap();
            for value in [got.estimate, got.low, got.high] {
                assert!((value - 1.5).abs() < 1e-12, "{estimator:?}: {got:?}");
            }
        }
    }

    #[test]
    fn even_counts_take_the_geometric_middle() {
        let got = paired_ratio(&[(2.0, 1.0), (8.0, 1.0)], RESAMPLES, 1).unwrap();
        assert!((got.estimate - 4.0).abs() < 1e-12);
    }

    #[test]
    fn few_pairs_have_nearly_their_whole_range() {
        // No interval of five covers the middle in 95 %: even the whole range misses it in 2 of 2^5 cases.
        for n in 2u32..=5 {
            let pairs: Vec<(f64, f64)> = (0..n).map(|i| (f64::from(3 + 4 * i % n), 1.0)).collect();
            let got = paired_ratio(&pairs, RESAMPLES, 9).unwrap();
            let (least, most) = (
                pairs.iter().map(|p| p.0).fold(f64::MAX, f64::min),
                pairs.iter().map(|p| p.0).fold(0.0, f64::max),
            );
            assert!((got.low - least).abs() < 1e-9 && (got.high - most).abs() < 1e-9, "{got:?} (seed 9)");
        }
    }

    #[test]
    fn invalid_pairs_have_no_ratio() {
        assert_eq!(paired_ratio(&[], RESAMPLES, 1), None);
        assert_eq!(paired_ratio(&[(1.0, 1.0)], 0, 1), None);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(paired_ratio(&[(1.0, 1.0), (bad, 1.0)], RESAMPLES, 1), None);
            assert_eq!(paired_ratio(&[(1.0, bad)], RESAMPLES, 1), None);
        }
    }

    proptest! {
        #[test]
        fn exchanging_the_arms_gives_the_reciprocal(
            pairs in proptest::collection::vec((0.01f64..100.0, 0.01f64..100.0), 1..40), seed: u64, trim: bool,
        ) {
            let estimator = if trim { TRIMMED } else { Estimator::MEDIAN };
            let swapped: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
            let there = paired_ratio_by(estimator, &pairs, 200, seed).unwrap();
            let back = paired_ratio_by(estimator, &swapped, 200, seed).unwrap();
            prop_assert!((there.estimate * back.estimate - 1.0).abs() < 1e-9);
            prop_assert!((there.low * back.high - 1.0).abs() < 1e-9);
            prop_assert!((there.high * back.low - 1.0).abs() < 1e-9);
            prop_assert!(there.low <= there.high);
        }
    }
}
