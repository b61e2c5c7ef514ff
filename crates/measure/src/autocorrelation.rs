//! Autocorrelation: how strongly the observations of a series depend on earlier ones.
//!
//! The autocorrelation at lag `k` is the correlation between an observation and the one `k` places later: 1
//! (same direction) to -1 (opposite directions), 0 if independent. Timings are correlated if the machine's
//! speed drifts slowly: a thousand timings can hold as much information as a hundred independent ones.
//! Confidence intervals that ignore this are too narrow.
//!
//! ```text
//! r(k) = Σ (x[i] − m)(x[i+k] − m) / Σ (x[i] − m)²       m: the mean; sums over all i with both terms
//! ```
//!
//! [`Autocorrelation::time`] is the number of observations that together have as much information as one
//! independent observation: 1 + 2 Σ r(k). The sum ends before the first two neighbouring lags with a sum of
//! at most 0 (Geyer 1992, the initial positive sequence). Later lags would add only noise.
//!
//! Invariants: `r[0]` is 1, and all others lie in -1 ..= 1.

use crate::transform::transform;
use rustfft::FftDirection;
use rustfft::num_complex::Complex;

/// The correlation of the observations of a series with later ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Autocorrelation {
    /// The autocorrelation at each lag, from lag 0, where it is 1.
    pub(crate) r: Vec<f64>,
}

impl Autocorrelation {
    /// The autocorrelation of the values, for the lags from 0 to `lags` (at most n − 1).
    ///
    /// `None` if there are fewer than two values, all are equal, or one is not finite: no correlation exists.
    pub(crate) fn of(values: &[f64], lags: usize) -> Option<Self> {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let apart = values.iter().any(|value| *value != values[0]);
        if !mean.is_finite() || !apart {
            return None;
        }
        let lags = lags.min(n - 1);
        // The sum of products at every lag is a convolution: the power spectrum, transformed back. As many
        // zeros as there are lags follow the values, so that values that wrap round meet only zeros.
        let size = (n + lags).next_power_of_two();
        let mut line = vec![Complex::new(0.0, 0.0); size];
        line.iter_mut().zip(values).for_each(|(slot, value)| slot.re = value - mean);
        transform(size, FftDirection::Forward).process(&mut line);
        line.iter_mut().for_each(|slot| *slot = Complex::new(slot.norm_sqr(), 0.0));
        transform(size, FftDirection::Inverse).process(&mut line);
        let squares = line[0].re;
        let mut r: Vec<f64> = line[..=lags].iter().map(|slot| (slot.re / squares).clamp(-1.0, 1.0)).collect();
        r[0] = 1.0;
        r.iter().all(|lag| lag.is_finite()).then_some(Self { r })
    }

    /// The integrated autocorrelation time, at least 1: the number of neighbouring observations worth one
    /// independent one. Too small if the correlation lasts longer than `lags`.
    pub(crate) fn time(&self) -> f64 {
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
    fn series_without_correlation_give_none() {
        for values in
            [&[][..], &[1.0], &[2.0; 9], &[1.0, f64::NAN], &[1.0, f64::INFINITY], &[1e308, -1e308, 1e308]]
        {
            assert_eq!(Autocorrelation::of(values, 3), None, "{values:?}");
        }
        for (lags, found) in [(0, 1), (9, 2)] {
            assert_eq!(Autocorrelation::of(&[1.0, 2.0], lags).unwrap().r.len(), found);
        }
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
            assert!((mean / want - 1.0).abs() < 0.1, "follow {follow}: {mean} for {want} (seeds 0..20)");
        }
    }

    proptest! {
        #[test]
        fn the_transform_gives_the_sums(values in proptest::collection::vec(-1e3f64..1e3, 2..80), lags in 0usize..90) {
            prop_assume!(values.iter().any(|value| *value != values[0]));
            let got = Autocorrelation::of(&values, lags).unwrap();
            prop_assert!(got.time() >= 1.0, "what corrects itself holds no less than what is independent");
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
