//! Do neighbouring observations resemble each other?
//!
//! The autocorrelation at lag `k` is how far an observation tells the one `k` places later: 1 wholly, 0 not
//! at all, below 0 in the opposite direction. Timings follow each other closely when the machine changes its
//! level slowly, and then a thousand of them hold no more than a hundred independent ones would. Intervals
//! and tests that ignore this are too sure.
//!
//! ```text
//! r(k) = Σ (x[i] − m)(x[i+k] − m) / Σ (x[i] − m)²       m the mean; both sums over all that there is
//! ```
//!
//! Of white noise, r(k) lies within ±1.96/√n in 95 of 100 cases; [`Autocorrelation::band`] is that width. The
//! test of Ljung and Box (1978) asks whether all lags together are those of white noise.
//! [`Autocorrelation::time`] is the number of observations that make one independent one: 1 + 2 Σ r(k). The
//! sum is cut where pairs of lags cease to be positive (Geyer 1992, the initial positive sequence), because
//! the noise of the lags beyond would add up.
//!
//! Invariants: `r[0]` is 1, and all others lie in -1 ..= 1.

use crate::transform::transform;
use rustfft::FftDirection;
use rustfft::num_complex::Complex;
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// White noise stays within this many standard deviations in 95 of 100 cases.
const WHITE_DEVIATIONS: f64 = 1.959_963_984_540_054;

/// How far the observations of a series tell later ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Autocorrelation {
    /// The autocorrelation at each lag, from lag 0, where it is 1.
    pub r: Vec<f64>,
    /// Of white noise, 95 of 100 lags other than 0 lie between minus this and this.
    pub band: f64,
    /// Of how many observations.
    pub n: usize,
}

impl Autocorrelation {
    /// Of the values, for the lags from 0 to `lags` (at most n − 1).
    ///
    /// `None` if there are fewer than two values, all are equal, or one is not a finite number: no
    /// correlation exists.
    #[must_use]
    pub fn of(values: &[f64], lags: usize) -> Option<Self> {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let apart = values.iter().any(|value| *value != values[0]);
        if !mean.is_finite() || !apart {
            return None;
        }
        let lags = lags.min(n - 1);
        // The sum over products at every lag is a convolution: the power spectrum, transformed back. With as
        // many zeros behind the values as there are lags, values that wrap round meet only zeros.
        let size = (n + lags).next_power_of_two();
        let mut line = vec![Complex::new(0.0, 0.0); size];
        line.iter_mut().zip(values).for_each(|(slot, value)| slot.re = value - mean);
        transform(size, FftDirection::Forward).process(&mut line);
        line.iter_mut().for_each(|slot| *slot = Complex::new(slot.norm_sqr(), 0.0));
        transform(size, FftDirection::Inverse).process(&mut line);
        let squares = line[0].re;
        let mut r: Vec<f64> = line[..=lags].iter().map(|slot| (slot.re / squares).clamp(-1.0, 1.0)).collect();
        r[0] = 1.0;
        r.iter().all(|lag| lag.is_finite()).then(|| Self { r, band: WHITE_DEVIATIONS / (n as f64).sqrt(), n })
    }

    /// The lags, other than 0, whose correlation lies outside the [`band`](Self::band). Of white noise one in
    /// twenty does.
    pub fn beyond(&self) -> impl Iterator<Item = usize> + '_ {
        (1..self.r.len()).filter(|lag| self.r[*lag].abs() > self.band)
    }

    /// The chance that white noise has correlations as large as these (Ljung and Box); `None` without lags
    /// beyond 0.
    #[must_use]
    pub fn white_p(&self) -> Option<f64> {
        let n = self.n as f64;
        let terms = self.r.iter().enumerate().skip(1).map(|(lag, r)| r * r / (n - lag as f64));
        let statistic = n * (n + 2.0) * terms.sum::<f64>();
        let freedom = (self.r.len() - 1) as f64;
        Some(ChiSquared::new(freedom).ok()?.sf(statistic))
    }

    /// How many neighbouring observations hold as much as one independent one: the integrated autocorrelation
    /// time, at least 1. Too small if the correlation lasts longer than the lags that were asked for.
    #[must_use]
    pub fn time(&self) -> f64 {
        let pairs = self.r.chunks_exact(2).map(|pair| pair[0] + pair[1]).take_while(|sum| *sum > 0.0);
        (2.0 * pairs.sum::<f64>() - 1.0).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use proptest::prelude::*;

    #[test]
    fn alternating_values_follow_the_closed_form() {
        // +1, -1, +1 …, n of them, even: r(k) = (-1)^k (n - k) / n.
        let values: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { 8.0 } else { 6.0 }).collect();
        let got = Autocorrelation::of(&values, 99).unwrap();
        for (lag, r) in got.r.iter().enumerate() {
            let want = (100 - lag) as f64 / 100.0 * if lag % 2 == 0 { 1.0 } else { -1.0 };
            assert!((r - want).abs() < 1e-12, "lag {lag}: {r}, expected {want}");
        }
        assert!(got.white_p().unwrap() < 1e-9);
        assert_eq!(got.time(), 1.0, "what corrects itself holds no less than what is independent");
    }

    #[test]
    fn no_answer_is_said() {
        for values in
            [&[][..], &[1.0], &[2.0; 9], &[1.0, f64::NAN], &[1.0, f64::INFINITY], &[1e308, -1e308, 1e308]]
        {
            assert_eq!(Autocorrelation::of(values, 3), None, "{values:?}");
        }
        let alone = Autocorrelation::of(&[1.0, 2.0], 0).unwrap();
        assert_eq!((alone.r.len(), alone.white_p()), (1, None));
        assert_eq!(Autocorrelation::of(&[1.0, 2.0], 9).unwrap().r.len(), 2);
    }

    #[test]
    fn white_noise_is_called_white_as_often_as_stated() {
        let (mut outside, mut rejected) = (0, 0);
        for seed in 0..400 {
            let got = Autocorrelation::of(&Noise::new(seed).white(300), 20).unwrap();
            outside += got.beyond().count();
            rejected += usize::from(got.white_p().unwrap() < 0.05);
        }
        // 8000 lags of which 5 % (a little less at this length) lie outside; 400 tests of which 5 % reject
        // (±4.5 deviations).
        assert!((300..460).contains(&outside), "{outside} (seeds 0..400)");
        assert!((3..41).contains(&rejected), "{rejected} (seeds 0..400)");
    }

    #[test]
    fn the_correlation_time_of_a_first_order_process() {
        // r(k) = φ^k, so 1 + 2 Σ r = (1 + φ) / (1 - φ).
        for (follow, want) in [(0.0, 1.0), (0.5, 3.0), (0.9, 19.0)] {
            let times: Vec<f64> = (0..20)
                .map(|seed| {
                    Autocorrelation::of(&Noise::new(seed).following(20_000, follow), 400).unwrap().time()
                })
                .collect();
            let mean = times.iter().sum::<f64>() / 20.0;
            assert!(
                (mean / want - 1.0).abs() < 0.1,
                "follow {follow}: {mean}, expected {want} (seeds 0..20)"
            );
        }
    }

    proptest! {
        #[test]
        fn the_transform_gives_the_sums(values in proptest::collection::vec(-1e3f64..1e3, 2..80), lags in 0usize..90) {
            prop_assume!(values.iter().any(|value| *value != values[0]));
            let got = Autocorrelation::of(&values, lags).unwrap();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let sum = |lag: usize| -> f64 {
                values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum()
            };
            for (lag, r) in got.r.iter().enumerate() {
                prop_assert!((r - sum(lag) / sum(0)).abs() < 1e-9, "lag {}: {} and {}", lag, r, sum(lag) / sum(0));
            }
        }
    }
}
