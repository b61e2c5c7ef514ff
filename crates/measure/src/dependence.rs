//! Dependence between neighbouring values: chooses how to resample a series, so that confidence intervals
//! hold the true value as often as stated.
//!
//! Resampling draws values from the series at random, many times. The scatter of the estimates from these
//! drawings gives the interval. If neighbouring values resemble each other, drawing them one by one makes the
//! interval too narrow. So blocks of neighbours are drawn. For a series of a few dozen values, the interval
//! is still too narrow, for three reasons:
//!
//! 1. The resemblance between the end of a block and the next values is lost.
//! 2. Blocks scatter about the middle of the series, not about the true middle.
//! 3. The scatter is estimated from few blocks.
//!
//! The remedy for all three is to draw *fewer values than the series has*. Estimates from fewer values
//! scatter more, so the interval is wider. This works for means and medians of any distribution.
//!
//! ```text
//! values ─▶ those near their median ─▶ autocorrelation r(1) … r(5) ─▶ φ ─▶ block = (3/2)^⅓ (2φ/(1−φ²))^⅔ n^⅓
//!                                                                             │
//!                                        drawn = n · share / (t / z)²   ◀─────┘
//! ```
//!
//! - `φ` is the dependence of a value on the one before: the coefficient of a first-order autoregressive
//!   process, the usual model for this choice (Andrews 1991). It is the largest of r(1) and the k-th roots of
//!   r(k) for the lags k from 2 to 5. These r(k) count only if they exceed the noise, and only before the
//!   first negative lag. The roots matter if short-lived noise hides a slow wave: r(1) is then small, but
//!   r(k) decreases slowly. To each r, (1 + 4r)/n is added, to correct its bias (Kendall 1954; Marriott and
//!   Pope 1954).
//! - Values far from the median (preemptions, page faults) are treated as missing, because they would hide
//!   the correlation of the other values.
//! - `block` is the best length of blocks for the variance of a mean of n values (Künsch 1989, in the form of
//!   Politis and White 2004). Politis and White compute it from a spectrum instead of φ. In short series the
//!   blocks are then too short: a correlation of 0.3 over 50 values is treated as noise. Intervals that
//!   ignore this correlation hold the true value in 89 % of cases instead of 95 %.
//! - `share` is the part of a mean's true variance that blocks of b values show (`shortfall` in the code). It
//!   is 1 − 2φ(1 − φᵇ)/(b(1 − φ²)) for a first-order process, minus b/n for the second reason above.
//! - `t` is Student's quantile with n/b − 1 degrees of freedom (n/b: number of blocks), `z` the normal one.
//! - Negative dependence is ignored: the evidence for it is too weak to narrow the interval.
//!
//! Invariants: `1 <= block <= max(1, n/4)`, and `drawn <= n`.

use crate::quantile::{DEVIATION_OVER_MAD, median, quantile_of_sorted};
use serde::Serialize;

/// The share of repetitions whose interval holds the true value.
pub const CONFIDENCE: f64 = 0.95;

/// The value below which the normal distribution has (1 + [`CONFIDENCE`]) / 2 of its mass.
const NORMAL_UPPER: f64 = 1.959_963_984_540_054;
/// The precision of Newton's method, as a share of the value.
const STUDENT_PRECISION: f64 = 1e-10;
/// The slices of a step for Simpson's rule; must be even.
const SLICES: usize = 32;
/// From this value on the series of the gamma functions' ratio has ten digits.
const SERIES_FROM: f64 = 30.0;

/// The number of lags whose autocorrelation is used.
const LAGS: usize = 5;
/// Lags beyond the first count if their correlation is this many times white noise's, 1/√n.
const BEYOND_NOISE: f64 = 2.0;
/// The largest persistence assumed: one value in 66 is then an independent one.
const PERSISTENCE_MAX: f64 = 0.97;
/// The least number of blocks in a series, so that there are some to choose from.
const BLOCKS_MIN: usize = 4;
/// Values this many standard deviations from the median count as disturbances …
const FAR: f64 = 4.0;
/// With more degrees of freedom Student's distribution is the normal one, to four digits (and its inverse
/// hard to compute).
const FREEDOM_MAX: f64 = 1e4;
/// The least shortfall assumed.
const SHORTFALL_MIN: f64 = 0.1;

/// The parameters of resampling that make the interval cover.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Dependence {
    /// The dependence of a value on the one before: 0 for none; at most 0.97.
    pub persistence: f64,
    /// The number of neighbours drawn together.
    pub block: usize,
    /// The number of values drawn in total. The fewer, the wider the interval.
    pub drawn: usize,
}

impl Dependence {
    /// The parameters for a series of finite numbers, in order of observation.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let persistence = persistence(values);
        let n = values.len() as f64;
        let alike = 2.0 * persistence / (1.0 - persistence * persistence);
        let best = (1.5 * alike * alike * n).cbrt().round() as usize;
        let block = best.clamp(1, (values.len() / BLOCKS_MIN).max(1));
        let drawn =
            (n * shortfall(persistence, block as f64, n) / spread_factor(n / block as f64 - 1.0)).round();
        Self { persistence, block, drawn: (drawn as usize).clamp(values.len().min(2), values.len()) }
    }
}

/// φ of the first-order process that models the series.
fn persistence(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let Some(lags) = correlations(values) else { return 0.0 };
    let corrected = |r: f64| (r + (1.0 + 4.0 * r) / n).clamp(0.0, PERSISTENCE_MAX);
    // Values that swing to and fro correlate at every other lag; they are not persistent.
    let positive = lags.iter().take_while(|r| **r > 0.0).skip(1);
    let later = (2..).zip(positive).filter(|(_, r)| **r > BEYOND_NOISE / n.sqrt());
    let roots = later.map(|(lag, r)| corrected(*r).powf(1.0 / f64::from(lag)));
    roots.fold(corrected(lags[0]), f64::max).min(PERSISTENCE_MAX)
}

/// The autocorrelation at the lags from 1 to [`LAGS`], 0 beyond the series. Disturbed values are treated as
/// missing. `None` if all values are equal.
fn correlations(values: &[f64]) -> Option<[f64; LAGS]> {
    let middle = median(values)?;
    let mut distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    distances.sort_unstable_by(f64::total_cmp);
    let usual = DEVIATION_OVER_MAD * quantile_of_sorted(&distances, 0.5);
    // If more than half of the values are equal, the median distance is 0, and no value counts as far off.
    let far = if usual > 0.0 { FAR * usual } else { f64::INFINITY };
    let near = |value: &f64| ((value - middle).abs() <= far).then_some(*value);
    let kept: Vec<Option<f64>> = values.iter().map(near).collect();
    let present = || kept.iter().flatten();
    let mean = present().sum::<f64>() / present().count() as f64;
    let covariance = |lag: usize| -> f64 {
        let pairs = kept.iter().zip(kept.iter().skip(lag)).filter_map(|(a, b)| Some((*a)? - mean).zip(*b));
        let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), (a, b)| (sum + a * (b - mean), count + 1.0));
        // The weight of a longer lag shrinks with the number of its pairs, as in a series without gaps.
        if count == 0.0 { 0.0 } else { sum / count * (values.len() - lag) as f64 / values.len() as f64 }
    };
    let variance = covariance(0);
    (variance > 0.0).then(|| std::array::from_fn(|lag| covariance(lag + 1) / variance))
}

/// The share of a mean's true variance that blocks show.
fn shortfall(persistence: f64, block: f64, n: f64) -> f64 {
    let cut =
        2.0 * persistence * (1.0 - persistence.powf(block)) / (block * (1.0 - persistence * persistence));
    (1.0 - cut - block / n).max(SHORTFALL_MIN)
}

/// The factor for a variance that is estimated from only `freedom` degrees of freedom.
fn spread_factor(freedom: f64) -> f64 {
    if freedom > FREEDOM_MAX {
        return 1.0;
    }
    (student_upper(freedom.max(1.0)) / NORMAL_UPPER).powi(2)
}

/// The value below which Student's distribution has (1 + [`CONFIDENCE`]) / 2 of its mass.
///
/// Newton's method starts at the middle, where half of the mass lies below. The density falls from there on,
/// so no step goes beyond the value.
fn student_upper(freedom: f64) -> f64 {
    let scale = gamma_half_over(freedom / 2.0) / (std::f64::consts::PI * freedom).sqrt();
    let density = |at: f64| scale * (1.0 + at * at / freedom).powf(-(freedom + 1.0) / 2.0);
    let (mut at, mut below) = (0.0, 0.5);
    loop {
        let step = ((1.0 + CONFIDENCE) / 2.0 - below) / density(at);
        if step <= at * STUDENT_PRECISION {
            return at;
        }
        // Simpson's rule.
        let wide = step / SLICES as f64;
        let inner = |place: usize| density(at + wide * place as f64) * if place % 2 == 1 { 4.0 } else { 2.0 };
        let sum = density(at) + (1..SLICES).map(inner).sum::<f64>() + density(at + step);
        below += sum * wide / 3.0;
        at += step;
    }
}

/// Γ(a + ½) / Γ(a), by its series for large a and the recurrence down to smaller ones.
fn gamma_half_over(mut a: f64) -> f64 {
    let mut ratio = 1.0;
    while a < SERIES_FROM {
        ratio *= a / (a + 0.5);
        a += 1.0;
    }
    let terms = [-1.0 / 8.0, 1.0 / 128.0, 5.0 / 1024.0, -21.0 / 32768.0];
    let series = terms.iter().rev().fold(0.0, |sum, term| (sum + term) / a);
    ratio * a.sqrt() * (1.0 + series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    fn mean_persistence(n: usize, follow: f64) -> f64 {
        let one = |seed| Dependence::of(&Noise::new(seed).following(n, follow)).persistence;
        (0..200).map(one).sum::<f64>() / 200.0
    }

    #[test]
    fn the_persistence_of_a_first_order_process_is_found() {
        for (n, follow) in [(5000, 0.3), (5000, 0.8), (100, 0.5), (100, 0.8)] {
            let mean = mean_persistence(n, follow);
            assert!((mean - follow).abs() < 0.06, "n {n}, {follow}: {mean} (seeds 0..200)");
        }
        // Positive values arise by chance: half of the noise of r(1), on average, and a little of the later
        // lags.
        assert!(mean_persistence(5000, 0.0) < 0.05);
        assert!(mean_persistence(5000, -0.5) < 0.01, "a lag of 0.25 after one of -0.5 is no persistence");
    }

    #[test]
    fn disturbances_do_not_hide_persistence() {
        let mut values = Noise::new(3).following(2000, 0.8);
        let mut noise = Noise::new(4);
        let wild = values.iter_mut().filter(|_| noise.unit() < 0.1);
        wild.for_each(|value| *value += 300.0 * (*value * 1e4).sin());
        let found = Dependence::of(&values).persistence;
        assert!((found - 0.8).abs() < 0.1, "{found} (seeds 3 and 4)");
    }

    #[test]
    fn a_slow_wave_under_short_noise_is_seen() {
        let wave = Noise::new(5).following(4000, 0.95);
        let noise = Noise::new(6).white(4000);
        let values: Vec<f64> = wave.iter().zip(&noise).map(|(wave, noise)| wave + 2.0 * noise).collect();
        let first = correlations(&values).unwrap()[0];
        let found = Dependence::of(&values).persistence;
        assert!(first < 0.25 && found > 0.6, "r(1) {first}, persistence {found} (seeds 5 and 6)");
    }

    #[test]
    fn independent_values_are_drawn_singly_and_nearly_all() {
        let found = Dependence::of(&Noise::new(8).white(5000));
        assert!(found.persistence < 0.03 && found.block <= 3 && found.drawn > 4700, "{found:?} (seed 8)");
    }

    #[test]
    fn the_shortfall_follows_from_the_variance_of_block_means() {
        // The variance of a mean of b values of a first-order process, times b, over its limit for large b:
        // (1 + 2 Σ (1 − k/b) φ^k) (1 − φ)/(1 + φ), summed here term by term.
        for (follow, block) in [(0.3f64, 4u32), (0.5, 9), (0.8, 20)] {
            let b = f64::from(block);
            let sum: f64 = (1..block).map(|k| (1.0 - f64::from(k) / b) * follow.powi(k as i32)).sum();
            let want = (1.0 + 2.0 * sum) * (1.0 - follow) / (1.0 + follow);
            let got = shortfall(follow, b, f64::INFINITY);
            assert!((got - want).abs() < 1e-12, "φ {follow}, b {block}: {got}, expected {want}");
        }
        assert!((shortfall(0.0, 5.0, 50.0) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn students_factor_is_that_of_the_tables() {
        // t(0.975) of 4 and of 10 degrees of freedom: 2.776 and 2.228; z 1.960.
        assert!((spread_factor(1.0) - (12.706_205f64 / 1.959_964).powi(2)).abs() < 1e-3);
        assert!((spread_factor(4.0) - (2.776_445f64 / 1.959_964).powi(2)).abs() < 1e-4);
        assert!((spread_factor(10.0) - (2.228_139f64 / 1.959_964).powi(2)).abs() < 1e-4);
        assert!((spread_factor(1e4) - 1.0).abs() < 1e-3 && spread_factor(1e9) == 1.0);
    }

    #[test]
    fn equal_or_single_values_have_no_dependence() {
        for values in [&[][..], &[3.0], &[3.0; 40]] {
            let found = Dependence::of(values);
            assert_eq!((found.persistence, found.block), (0.0, 1), "{values:?}");
            assert!(found.drawn <= values.len());
        }
        assert_eq!(Dependence::of(&[1.0, 2.0]).drawn, 2);
    }
}
