//! How much slower is A than B, from pairs timed side by side.
//!
//! The estimate is `exp(median(ln(a / b)))`. Logarithms make "twice" and "half" equally far from "the same", so
//! that exchanging A and B gives exactly the reciprocal; the median keeps a disturbed pair from moving the figure.
//!
//! The interval is a percentile bootstrap: the pairs are drawn again with replacement, the estimate taken of each
//! drawing, and the middle [`CONFIDENCE`] of those kept. Neighbouring pairs of a long series resemble each other,
//! and drawing them one by one would make the interval too narrow; so from [`BLOCKS_FROM_PAIRS`] pairs on they are
//! drawn in runs of `n^(1/3)` neighbours, the series taken as a ring so that every pair is as likely as any other
//! (Künsch 1989; Politis and Romano 1992). Below that number blocks would leave too few different drawings.

use crate::quantile::quantile_of_sorted;
use crate::{Interval, Rng};

/// The share of repetitions whose interval is to hold the true ratio.
pub const CONFIDENCE: f64 = 0.95;

/// From this many pairs on, resampling draws blocks of neighbours rather than single pairs.
pub const BLOCKS_FROM_PAIRS: usize = 27;

/// How many neighbouring pairs are drawn together when there are `pairs` of them.
#[must_use]
pub fn block_pairs(pairs: usize) -> usize {
    if pairs < BLOCKS_FROM_PAIRS { 1 } else { (pairs as f64).cbrt().round() as usize }
}

/// The median ratio `a / b` over the pairs, in the order they were observed, with its interval.
///
/// `resamples` drawings make the interval (a thousand is plenty). `None` when there are no pairs or no resamples,
/// or when a value is not a positive finite number.
#[must_use]
pub fn paired_ratio(pairs: &[(f64, f64)], resamples: usize, seed: u64) -> Option<Interval> {
    let usable = |v: f64| v.is_finite() && v > 0.0;
    if pairs.is_empty() || resamples == 0 || !pairs.iter().all(|(a, b)| usable(*a) && usable(*b)) {
        return None;
    }
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| a.ln() - b.ln()).collect();
    let mut scratch = logs.clone();
    let estimate = middle(&mut scratch);

    let mut rng = Rng::new(seed);
    let mut drawn: Vec<f64> = (0..resamples)
        .map(|_| {
            draw(&logs, &mut scratch, &mut rng);
            middle(&mut scratch)
        })
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some(Interval {
        estimate: estimate.exp(),
        low: quantile_of_sorted(&drawn, tail).exp(),
        high: quantile_of_sorted(&drawn, 1.0 - tail).exp(),
    })
}

/// Fills `out` with blocks of neighbours of `logs`, taken as a ring, each start equally likely.
fn draw(logs: &[f64], out: &mut [f64], rng: &mut Rng) {
    for block in out.chunks_mut(block_pairs(logs.len())) {
        let start = rng.below(logs.len() as u64) as usize;
        for (step, slot) in block.iter_mut().enumerate() {
            *slot = logs[(start + step) % logs.len()];
        }
    }
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use proptest::prelude::*;

    const RESAMPLES: usize = 4000;

    /// Normal deviates by Box and Muller.
    fn normal(rng: &mut Rng) -> f64 {
        let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * rng.unit()).cos()
    }

    /// Chance that at least `needed` of `n` draws, each with chance `p`, succeed.
    fn at_least(n: u32, needed: u32, p: f64) -> f64 {
        let choose = |k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
        (needed..=n).map(|k| choose(k) * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)).sum()
    }

    #[test]
    fn a_constant_ratio_has_no_width() {
        let pairs: Vec<(f64, f64)> = (1..=9).map(|i| (1.5 * f64::from(i), f64::from(i))).collect();
        let got = paired_ratio(&pairs, RESAMPLES, 1).unwrap();
        for value in [got.estimate, got.low, got.high] {
            assert!((value - 1.5).abs() < 1e-12, "{got:?}");
        }
    }

    #[test]
    fn even_counts_take_the_geometric_middle() {
        let got = paired_ratio(&[(2.0, 1.0), (8.0, 1.0)], RESAMPLES, 1).unwrap();
        assert!((got.estimate - 4.0).abs() < 1e-12);
    }

    #[test]
    fn the_interval_of_few_pairs_follows_from_the_binomial() {
        // The median of n drawings is at most the k-th smallest observation when more than n/2 drawings fall among
        // the k smallest: a binomial chance. The ends of the interval are where that chance passes 2.5 and 97.5 %.
        for n in [3u32, 5, 7, 9, 11, 15] {
            let pairs: Vec<(f64, f64)> = (1..=n).map(|i| (f64::from(i), 1.0)).collect();
            let passes = |share: f64| {
                (1..=n).find(|k| at_least(n, n / 2 + 1, f64::from(*k) / f64::from(n)) > share).map(f64::from)
            };
            let got = paired_ratio(&pairs, 40_000, 9).unwrap();
            let (low, high) = (passes(0.025).unwrap(), passes(0.975).unwrap());
            assert!((got.low - low).abs() < 1e-9, "n {n}: low {} expected {low} (seed 9)", got.low);
            assert!((got.high - high).abs() < 1e-9, "n {n}: high {} expected {high} (seed 9)", got.high);
        }
    }

    #[test]
    fn no_answer_is_said() {
        assert_eq!(paired_ratio(&[], RESAMPLES, 1), None);
        assert_eq!(paired_ratio(&[(1.0, 1.0)], 0, 1), None);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(paired_ratio(&[(1.0, 1.0), (bad, 1.0)], RESAMPLES, 1), None);
            assert_eq!(paired_ratio(&[(1.0, bad)], RESAMPLES, 1), None);
        }
    }

    /// Share of `trials` series of `n` pairs whose interval holds the true ratio, 1.1, when the logarithms follow
    /// their predecessor with weight `follow`.
    fn coverage(n: usize, follow: f64, trials: u64) -> f64 {
        let held = (0..trials).filter(|trial| {
            let mut rng = Rng::new(1000 + trial);
            let mut level = normal(&mut rng) / (1.0 - follow * follow).sqrt();
            let pairs: Vec<(f64, f64)> = (0..n)
                .map(|_| {
                    level = follow * level + normal(&mut rng);
                    (1.1 * (0.05 * level).exp(), 1.0)
                })
                .collect();
            paired_ratio(&pairs, 400, *trial).unwrap().contains(1.1)
        });
        held.count() as f64 / trials as f64
    }

    #[test]
    fn intervals_of_independent_pairs_cover() {
        for n in [11, 25, 60] {
            let share = coverage(n, 0.0, 400);
            assert!((0.91..=0.99).contains(&share), "{n} pairs: covered {share} (seeds 1000..1400)");
        }
    }

    #[test]
    fn blocks_widen_the_interval_of_pairs_that_resemble_their_neighbours() {
        // With weight 0.5 the variance of a mean is three times that of independent pairs; drawn one by one, the
        // interval would cover about 74 % (2 Phi(1.96 / sqrt 3) - 1).
        let share = coverage(216, 0.5, 300);
        assert!(share > 0.82, "covered {share} (seeds 1000..1300)");
    }

    proptest! {
        #[test]
        fn exchanging_the_arms_gives_the_reciprocal(
            pairs in proptest::collection::vec((0.01f64..100.0, 0.01f64..100.0), 1..40), seed: u64,
        ) {
            let swapped: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
            let there = paired_ratio(&pairs, 200, seed).unwrap();
            let back = paired_ratio(&swapped, 200, seed).unwrap();
            prop_assert!((there.estimate * back.estimate - 1.0).abs() < 1e-9);
            prop_assert!((there.low * back.high - 1.0).abs() < 1e-9);
            prop_assert!((there.high * back.low - 1.0).abs() < 1e-9);
            prop_assert!(there.low <= there.high);
        }

        #[test]
        fn a_unit_of_time_does_not_matter(
            pairs in proptest::collection::vec((0.01f64..100.0, 0.01f64..100.0), 1..40), seed: u64,
        ) {
            let scaled: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (a * 1e9, b * 1e9)).collect();
            let (one, other) = (paired_ratio(&pairs, 100, seed).unwrap(), paired_ratio(&scaled, 100, seed).unwrap());
            prop_assert!((one.low / other.low - 1.0).abs() < 1e-9);
        }
    }
}
