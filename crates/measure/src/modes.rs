//! Modes: tests whether the values cluster around one level or several.
//!
//! A machine that is sometimes fast and sometimes slow has two levels, and no single figure describes both.
//!
//! [The dip](crate::dip) tests if there is more than one mode, without a choice of bin width. If it shows
//! more than one, we choose, within a band around the empirical distribution function, the distribution
//! function with the fewest modes. This function is shaped like a string pulled tight in the band, which
//! touches the band's edges only where it must bend. Each bend from rising to falling steepness is a mode.
//!
//! ```text
//! share │             ╭───── band
//!       │       ╭────╯╱──╯
//!       │ ╭────╯╱──╯
//!       └────────────────▶ value
//! ```
//!
//! Two effects can create false modes, and are removed first:
//! - The step of a clock concentrates values at its multiples: each value is moved at random within its step.
//! - Neighbours resemble each other: a hundred observations may be worth only ten independent ones. The test
//!   uses this smaller number ([`Autocorrelation::time`] of the ranks). A series whose level shifted once
//!   therefore does not count as bimodal; [`Steady`](crate::Steady) reports the shift.
//!
//! Invariants: shares of the modes sum to 1; modes are in rising order; there is always at least one.
//!
//! Sources. The dip: Hartigan and Hartigan (1985); the string: Davies and Kovac, "Local extremes,
//! runs, strings and multiresolution" (2001), with the dip's own quantile as the band's half-width,
//! so that test and string agree.

use std::collections::VecDeque;

use serde::Serialize;

use crate::autocorrelation::Autocorrelation;
use crate::dip::{dip, dip_beyond, dip_chance};
use crate::ranks::rank_shares;
use crate::{Rng, median};

/// The largest share of series with one mode that are reported to have more.
pub const MODES_FALSE_ALARM: f64 = 0.01;

/// Modes with a smaller share of the values do not make a series bimodal.
pub const MODE_SHARE_MIN: f64 = 0.05;

/// The least number of values for a test.
const VALUES_MIN: usize = 8;

/// The lags of the autocorrelation reach over this part of the series at most.
const LAGS_SHARE: usize = 4;

/// The modes of values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Modality {
    /// The dip: 0 for exactly one mode, ¼ for two modes far apart.
    pub dip: f64,
    /// The probability that values with one mode have such a dip; at least 0.0002.
    pub p: f64,
    /// The number of independent values that these values are worth.
    pub independent: f64,
    /// The modes, in rising order: one unless [`p`](Self::p) is at most [`MODES_FALSE_ALARM`].
    pub modes: Vec<Mode>,
}

/// A level round which the values cluster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mode {
    /// The median of the values in the densest stretch.
    pub at: f64,
    /// The start of the densest stretch.
    pub low: f64,
    /// The end of the densest stretch.
    pub high: f64,
    /// The share of all values that belongs to the mode: up to the emptiest stretch on either side.
    pub share: f64,
}

impl Modality {
    /// The modes of values in order of observation, measured in steps of `step` (0 if there are no steps).
    ///
    /// `seed` determines the random moves within a step. `None` if there are fewer than eight values, one is
    /// not finite, or the step is negative or not a number.
    #[must_use]
    pub fn of(values: &[f64], step: f64, seed: u64) -> Option<Self> {
        if values.len() < VALUES_MIN
            || !(step >= 0.0 && step.is_finite())
            || values.iter().any(|v| !v.is_finite())
        {
            return None;
        }
        let correlation = Autocorrelation::of(&rank_shares(values)?, values.len() / LAGS_SHARE);
        let independent = values.len() as f64 / correlation.map_or(1.0, |correlation| correlation.time());
        let mut rng = Rng::new(seed);
        let mut sorted: Vec<f64> = values.iter().map(|value| value + step * (rng.unit() - 0.5)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let dip = dip(&sorted);
        let p = dip_chance(dip, independent);
        let beyond = dip_beyond(MODES_FALSE_ALARM, independent);
        // No curve with one mode is nearer than the dip, so a narrower band contains none.
        let modes = if p <= MODES_FALSE_ALARM { modes(&sorted, beyond.min(0.99 * dip)) } else { Vec::new() };
        let modes = if modes.is_empty() { vec![single(&sorted, beyond.max(dip))] } else { modes };
        Some(Self { dip, p, independent, modes })
    }

    /// True if at least two modes have a share of [`MODE_SHARE_MIN`] or more.
    #[must_use]
    pub fn is_bimodal(&self) -> bool {
        self.modes.iter().filter(|mode| mode.share >= MODE_SHARE_MIN).count() >= 2
    }
}

/// A stretch over which the string is straight.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    low: f64,
    high: f64,
    steepness: f64,
}

/// The modes of sorted values: the steepest stretches of the string in a band of this half-width.
fn modes(sorted: &[f64], band: f64) -> Vec<Mode> {
    let stretches = string(sorted, band);
    let steepness =
        |i: Option<usize>| i.and_then(|i| stretches.get(i)).map_or(0.0, |stretch| stretch.steepness);
    let neighbours = |i: usize| (steepness(i.checked_sub(1)), stretches[i].steepness, steepness(Some(i + 1)));
    let is_top = |i: &usize| matches!(neighbours(*i), (left, here, right) if here > left && here > right);
    let tops: Vec<usize> = (0..stretches.len()).filter(is_top).collect();
    // The emptiest stretch between two modes is divided in the middle.
    let mut cuts = vec![0];
    for pair in tops.windows(2) {
        let flat = stretches[pair[0]..pair[1]].iter().min_by(|a, b| a.steepness.total_cmp(&b.steepness));
        let middle = flat.map_or(0.0, |stretch| f64::midpoint(stretch.low, stretch.high));
        cuts.push(sorted.partition_point(|value| *value < middle));
    }
    cuts.push(sorted.len());
    let share = |pair: &[usize]| (pair[1] - pair[0]) as f64 / sorted.len() as f64;
    tops.iter().zip(cuts.windows(2)).map(|(top, pair)| mode(sorted, &stretches[*top], share(pair))).collect()
}

/// The mode of values that have only one: where they are densest.
fn single(sorted: &[f64], band: f64) -> Mode {
    let stretches = string(sorted, band);
    let top = stretches.into_iter().max_by(|a, b| a.steepness.total_cmp(&b.steepness));
    let all = Stretch { low: sorted[0], high: sorted[sorted.len() - 1], steepness: 0.0 };
    mode(sorted, &top.unwrap_or(all), 1.0)
}

fn mode(sorted: &[f64], top: &Stretch, share: f64) -> Mode {
    let inside = sorted.partition_point(|v| *v < top.low)..sorted.partition_point(|v| *v <= top.high);
    let at = median(&sorted[inside]).unwrap_or(f64::midpoint(top.low, top.high));
    Mode { at, low: top.low, high: top.high, share }
}

/// The distribution function of the string: pulled tight in a band of ± `band` round the values' own
/// function, from the first value to the last.
///
/// Each edge of the band keeps a chain from the last bend on: the upper one gets ever steeper, the lower one
/// ever flatter. If a new point leaves no way between the two, the string bends at the first point of the
/// other chain.
fn string(sorted: &[f64], band: f64) -> Vec<Stretch> {
    let n = sorted.len() as f64;
    let end = sorted.len() - 1;
    let mut bends = vec![(sorted[0], 0.0)];
    let mut upper = Chain::new(bends[0], |before, after| before >= after);
    let mut lower = Chain::new(bends[0], |before, after| before <= after);
    let mut place = 1;
    while place <= end {
        let x = sorted[place];
        let equal = sorted[place..].iter().take_while(|value| **value == x).count();
        // Just before this value the curve is at place / n, just after it at (place + equal) / n.
        let (mut low, mut high) = ((place + equal) as f64 / n - band, place as f64 / n + band);
        if low > high {
            (low, high) = (f64::midpoint(low, high), f64::midpoint(low, high));
        }
        place += equal;
        if place > end {
            (low, high) = (1.0, 1.0);
        }
        if x > sorted[0] {
            upper.add((x, high), &mut lower, &mut bends, |new, other| new < other);
            lower.add((x, low), &mut upper, &mut bends, |new, other| new > other);
        }
    }
    bends.extend(upper.points.back().filter(|last| Some(*last) != bends.last()));
    let pieces = bends.windows(2).map(|pair| Stretch {
        low: pair[0].0,
        high: pair[1].0,
        steepness: steepness(pair[0], pair[1]),
    });
    pieces.collect()
}

type Corner = (f64, f64);

fn steepness(from: Corner, to: Corner) -> f64 {
    (to.1 - from.1) / (to.0 - from.0)
}

/// The limits that one edge of the band sets, from the string's last bend on.
struct Chain {
    points: VecDeque<Corner>,
    /// True if a corner between two stretches of these slopes bends the wrong way.
    wrong: fn(f64, f64) -> bool,
}

impl Chain {
    fn new(start: Corner, wrong: fn(f64, f64) -> bool) -> Self {
        Self { points: VecDeque::from([start]), wrong }
    }

    fn add(&mut self, new: Corner, other: &mut Self, bends: &mut Vec<Corner>, crosses: fn(f64, f64) -> bool) {
        while let [.., a, b] = self.points.make_contiguous()[..] {
            if !(self.wrong)(steepness(a, b), steepness(b, new)) {
                break;
            }
            self.points.pop_back();
        }
        // Only the bend is left of this chain: the new point may lie outside the limits of the other edge.
        while self.points.len() == 1 && other.points.len() > 1 {
            let (bend, next) = (other.points[0], other.points[1]);
            if !(next.0 < new.0 && crosses(steepness(bend, new), steepness(bend, next))) {
                break;
            }
            bends.push(next);
            other.points.pop_front();
            self.points[0] = next;
        }
        self.points.push_back(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    /// Normal values round levels, each level with its share, in random order.
    fn mixture(seed: u64, n: usize, levels: &[(f64, f64)]) -> Vec<f64> {
        let mut noise = Noise::new(seed);
        let mut draw = || {
            let mut left = noise.unit();
            let pick = levels.iter().find(|(_, share)| {
                left -= share;
                left < 0.0
            });
            pick.unwrap_or(&levels[0]).0 + noise.normal()
        };
        (0..n).map(|_| draw()).collect()
    }

    #[test]
    fn two_levels_are_found_with_their_shares() {
        let got = Modality::of(&mixture(1, 2000, &[(100.0, 0.7), (108.0, 0.3)]), 0.0, 1).unwrap();
        assert!(got.is_bimodal() && got.p <= 0.001, "{got:?} (seed 1)");
        assert_eq!(got.modes.len(), 2, "{got:?} (seed 1)");
        for (mode, (at, share)) in got.modes.iter().zip([(100.0, 0.7), (108.0, 0.3)]) {
            assert!((mode.at - at).abs() < 0.6 && (mode.share - share).abs() < 0.04, "{got:?} (seed 1)");
            assert!(mode.low <= mode.at && mode.at <= mode.high, "{got:?} (seed 1)");
        }
    }

    #[test]
    fn three_levels_are_three() {
        let got = Modality::of(&mixture(2, 6000, &[(0.0, 0.4), (8.0, 0.35), (20.0, 0.25)]), 0.0, 1).unwrap();
        let at: Vec<f64> = got.modes.iter().map(|mode| mode.at.round()).collect();
        assert_eq!(at.len(), 3, "{got:?} (seed 2)");
        assert!(at.iter().zip([0.0, 8.0, 20.0]).all(|(a, b)| (a - b).abs() <= 1.0), "{got:?} (seed 2)");
        assert!((got.modes.iter().map(|mode| mode.share).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn every_shape_of_one_mode_is_one_mode() {
        type Shape = (&'static str, fn(&mut Noise) -> f64);
        let shapes: [Shape; 4] = [
            ("normal", Noise::normal),
            ("uniform", Noise::unit),
            ("exponential", Noise::exponential),
            ("heavy-tailed", |noise| noise.pareto(1.1)),
        ];
        for (name, draw) in shapes {
            let rejected = (0..100)
                .filter(|seed| {
                    let mut noise = Noise::new(*seed);
                    let values: Vec<f64> = (0..500).map(|_| draw(&mut noise)).collect();
                    let got = Modality::of(&values, 0.0, *seed).unwrap();
                    assert!(got.modes.len() == 1 || got.p <= MODES_FALSE_ALARM);
                    got.modes.len() > 1
                })
                .count();
            // The stated rate is one in a hundred; five or more occur once in three hundred times.
            assert!(rejected <= 4, "{name}: {rejected} of seeds 0..100");
        }
    }

    #[test]
    fn dependent_noise_is_not_bimodal() {
        let rejected = |follow: f64| {
            let of = |seed: u64| Modality::of(&Noise::new(seed).following(1500, follow), 0.0, seed).unwrap();
            (0..100).filter(|seed| of(*seed).p <= MODES_FALSE_ALARM).count()
        };
        for follow in [0.5, 0.9, 0.98] {
            assert!(rejected(follow) <= 4, "follow {follow}: {} of seeds 0..100", rejected(follow));
        }
    }

    #[test]
    fn levels_that_alternate_in_runs_are_still_two() {
        let mut noise = Noise::new(5);
        let mut slow = false;
        let mut next = || {
            slow ^= noise.unit() < 0.05;
            if slow { 130.0 + noise.normal() } else { 100.0 + noise.normal() }
        };
        let values: Vec<f64> = (0..6000).map(|_| next()).collect();
        let got = Modality::of(&values, 0.0, 1).unwrap();
        assert!(got.is_bimodal() && got.independent < 1000.0, "{got:?} (seed 5)");
    }

    #[test]
    fn one_shift_is_not_two_modes() {
        let mut values = Noise::new(6).white(4000);
        values[2000..].iter_mut().for_each(|value| *value += 10.0);
        assert!(!Modality::of(&values, 0.0, 1).unwrap().is_bimodal(), "(seed 6)");
    }

    #[test]
    fn a_clocks_steps_are_no_modes() {
        let mut noise = Noise::new(7);
        let values: Vec<f64> = (0..2000).map(|_| if noise.unit() < 0.6 { 20.0 } else { 30.0 }).collect();
        let got = Modality::of(&values, 10.0, 3).unwrap();
        assert!(!got.is_bimodal(), "{got:?} (seed 7)");
        let stepless = Modality::of(&values, 0.0, 3).unwrap();
        assert!(got.p > MODES_FALSE_ALARM && stepless.p < 0.001, "{got:?} (seed 7)");
    }

    #[test]
    fn a_rare_mode_does_not_make_a_series_bimodal() {
        let got = Modality::of(&mixture(8, 20_000, &[(100.0, 0.97), (200.0, 0.03)]), 0.0, 1).unwrap();
        assert!(!got.is_bimodal(), "{got:?} (seed 8)");
    }

    #[test]
    fn invalid_values_have_no_modes() {
        assert_eq!(Modality::of(&[1.0; 7], 0.0, 1), None);
        assert_eq!(Modality::of(&[f64::INFINITY; 20], 0.0, 1), None);
        assert_eq!(Modality::of(&[1.0; 20], -1.0, 1), None);
        let equal = Modality::of(&[7.0; 20], 0.0, 1).unwrap();
        assert_eq!((equal.modes.len(), equal.modes[0].at, equal.modes[0].share), (1, 7.0, 1.0));
    }

    #[test]
    fn the_string_stays_in_its_band_and_rises() {
        for seed in 0..50 {
            let mut values = mixture(seed, 300, &[(0.0, 0.5), (6.0, 0.5)]);
            values.sort_by(f64::total_cmp);
            let band = 0.04;
            let stretches = string(&values, band);
            assert!(stretches.iter().all(|stretch| stretch.steepness >= -1e-12), "seed {seed}");
            assert!(stretches.windows(2).all(|pair| pair[0].high == pair[1].low), "seed {seed}");
            let height = |x: f64| -> f64 {
                stretches.iter().map(|s| s.steepness * (x.clamp(s.low, s.high) - s.low)).sum()
            };
            for (i, value) in values.iter().enumerate() {
                let (low, high) = ((i + 1) as f64 / 300.0 - band, i as f64 / 300.0 + band);
                assert!((low - 1e-9..=high + 1e-9).contains(&height(*value)), "seed {seed}, place {i}");
            }
        }
    }
}
