//! Finds disturbances, which are events in time: observations that took longer than those around them.
//!
//! A periodic disturbance of a few microseconds is small beside a preemption a thousand times longer, and
//! beside the noise of the operation. Events are therefore sorted by size into shells, each from one size to
//! twice that size. A search covers a range of shells; within a range all events count equally.
//!
//! ```text
//! excess   │      ·                          ·                shell 3   8 to 16 floors
//!          │  ×         ×         ×         ×         ×       shell 2   4 to 8: a beat, hidden in the sum
//!          │ ·   · ··  ·   · · ·   ··   ·   · ·  · ·  ·       shell 0
//!   floor ─┼──────────────────────────────────────────────
//!          │ noise of the operation                     ──▶ time
//! ```
//!
//! Neighbouring observations that all took longer are one disturbance, because one cause lasted through all
//! of them. (Counted singly they would show the frequency of the observations themselves.)
//!
//! The excess is an observation's time beyond the median of its part (a sixteenth) of the series, because the
//! level of a shared machine moves. Events exceed the floor, which is twice the operation's noise (by the
//! median absolute deviation), or the smallest excess if more than half of the values are equal.

use std::ops::Range;

use crate::quantile::{DEVIATION_OVER_MAD, median};

/// The number of parts of the series, each with its own level.
const LEVELS: usize = 16;

/// The least number of observations in a part, so that its median is reliable.
const LEVEL_OBSERVATIONS_MIN: usize = 32;

/// The least size of a disturbance, in standard deviations of the noise.
const FLOOR_DEVIATIONS: f64 = 2.0;

/// An excess below this share of the value is rounding.
const ROUNDING: f64 = 1e-9;

/// The most shells; the last one has all larger disturbances.
pub(super) const SHELLS_MAX: usize = 24;

/// One or more neighbouring observations that took longer than those around them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Disturbance {
    /// The places of the observations in the series.
    pub(super) places: Range<usize>,
    /// The start of the first observation, in seconds (or observations) from the first of the series.
    pub(super) at: f64,
    /// Their excess time together, in the unit of the values.
    pub(super) lost: f64,
    pub(super) shell: usize,
}

/// The disturbances of a series in order; `values` are finite, and `at` are their times.
pub(super) fn disturbances(at: &[f64], values: &[f64]) -> Vec<Disturbance> {
    let parts = (values.len() / LEVEL_OBSERVATIONS_MIN).clamp(1, LEVELS);
    let part = values.len().div_ceil(parts).max(1);
    let excesses: Vec<f64> = values
        .chunks(part)
        .flat_map(|chunk| {
            let level = median(chunk).unwrap_or(0.0);
            chunk.iter().map(move |value| value - level)
        })
        .collect();
    let sizes: Vec<f64> = excesses.iter().map(|excess| excess.abs()).collect();
    let noise = DEVIATION_OVER_MAD * median(&sizes).unwrap_or(0.0);
    let seen = excesses.iter().zip(values).filter(|(excess, value)| **excess > ROUNDING * value.abs());
    let least = seen.map(|(excess, _)| *excess).fold(f64::INFINITY, f64::min);
    let floor = least.max(FLOOR_DEVIATIONS * noise);
    let mut first = 0;
    let runs = excesses.chunk_by(|a, b| (*a >= floor) == (*b >= floor)).filter_map(|run| {
        let places = first..first + run.len();
        first = places.end;
        if run[0] < floor {
            return None;
        }
        let lost: f64 = run.iter().sum();
        let shell = ((lost / floor).log2() as usize).min(SHELLS_MAX - 1);
        Some(Disturbance { at: at[places.start], places, lost, shell })
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    fn seconds(n: usize) -> Vec<f64> {
        (0..n).map(|i| i as f64 * 1e-4).collect()
    }

    #[test]
    fn without_visible_noise_every_excess_counts() {
        let size = |i: usize| [20.0, 30.0, 20.0, 50.0, 40.0, 20.0, 20.0][i % 7] + 1e-12 * (i % 5) as f64;
        let found = disturbances(&seconds(700), &(0..700).map(size).collect::<Vec<_>>());
        let (short, long): (Vec<_>, Vec<_>) = found.iter().partition(|one| one.places.len() == 1);
        assert!(short.len() == 100 && short.iter().all(|one| one.places.start % 7 == 1 && one.shell == 0));
        assert!(
            long.len() == 100 && long.iter().all(|one| one.places.start % 7 == 3 && one.shell == 2),
            "10 against 50"
        );
    }

    #[test]
    fn equal_values_hold_none() {
        assert_eq!(disturbances(&seconds(100), &[7.0; 100]), []);
        assert_eq!(disturbances(&[], &[]), []);
    }

    #[test]
    fn shells_double() {
        // Noise of 0 and ±1 in equal shares has a median absolute deviation of 1, so the floor is 2 × 1.4826.
        let mut values: Vec<f64> = (0..960).map(|i| 99.0 + f64::from(i % 3)).collect();
        values[99..110].fill(100.0);
        for (i, times) in [1.1, 1.9, 2.1, 4.1, 1e12].into_iter().enumerate() {
            values[100 + 2 * i] = 100.0 + times * FLOOR_DEVIATIONS * DEVIATION_OVER_MAD;
        }
        let shells: Vec<usize> = disturbances(&seconds(960), &values).iter().map(|one| one.shell).collect();
        assert_eq!(shells, [0, 0, 1, 2, SHELLS_MAX - 1]);
    }

    #[test]
    fn the_level_is_followed() {
        let mut noise = Noise::new(8);
        let values: Vec<f64> =
            (0..16_000).map(|i| 100.0 + f64::from(i / 4000) * 50.0 + noise.normal()).collect();
        let found = disturbances(&seconds(16_000), &values);
        let share = found.iter().map(|one| one.places.len()).sum::<usize>() as f64 / 16_000.0;
        // Beyond two deviations lie 2.3 % of normal noise, whatever the level.
        assert!((0.018..0.028).contains(&share), "{share} (seed 8)");
    }
}
