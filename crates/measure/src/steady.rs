//! Steady state: where the level of a series changes, and from which observation on it is steady.
//!
//! A program warms up; a machine changes its speed; another tenant comes and goes. A figure over all
//! observations then mixes several levels. The series is therefore divided into stretches of equal level.
//! The steady state is the longest tail of the series whose stretches all have the level of the last one.
//!
//! ```text
//! │××
//! │  ×××××                                  three stretches
//! │       ××××××××××××××××××××××××××
//! └───────┴─────────────────────────▶ order
//!         └ steady from here on; before: a warm-up
//! ```
//!
//! Outliers and dependent noise do not count as changes of level:
//!
//! - levels are compared by the ranks of the observations, so an outlier weighs as little as a value just
//!   beyond the others;
//! - the penalty for a change is in units of the noise's long-run variance, which dependence between
//!   neighbours raises. This variance is the largest of the estimates from the differences between
//!   neighbouring blocks of 1, 2, 4 … observations. Each estimate is a median, so that the few blocks across
//!   a change of level do not count;
//! - each stretch is ranked and divided again alone, so that the levels within a short warm-up are separated;
//! - in a long series, changes are first sought among means of blocks, then moved to the best observation.
//!
//! Invariants: stretches follow each other without gaps and cover the series; a stretch has at least
//! [`STRETCH_MIN`] observations.
//!
//! Sources: the division is PELT ([`segments`](crate::segments)); the steady end of a series is defined as by
//! Barrett and others, "Virtual machine warmup blows hot and cold" (2017). Departure: they compare the
//! means and variances of stretches, after outliers in a moving window are removed; ranks need no window.

use serde::Serialize;

use crate::quantile::{DEVIATION_OVER_MAD, median};
use crate::ranks::rank_shares;
use crate::segments::{POINTS_MAX, changes};

/// The largest share of series without a change that are reported to have one.
pub const CHANGE_FALSE_ALARM: f64 = 0.01;

/// The shortest stretch, in observations.
pub const STRETCH_MIN: usize = 8;

/// Levels that differ by less than this share are the same.
pub const LEVEL_TOLERANCE: f64 = 0.01;

/// The least share of the series that the steady end must have.
pub const STEADY_SHARE_MIN: f64 = 0.2;

/// The least number of observations in which changes are searched.
const VALUES_MIN: usize = 4 * STRETCH_MIN;

/// The penalty for a change, in variances of the noise times the logarithm of the number of points.
const PENALTY: f64 = 4.0;

/// The least variance of the noise, as a share of the variance of all ranks. With three levels wide apart the
/// noise has a ninth.
const VARIANCE_MIN: f64 = 0.1;

/// The least number of blocks for an estimate of the variance. Noise with a memory longer than the longest
/// block may count as changes.
const BLOCKS_MIN: usize = 12;

/// The course of a series' level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Steady {
    /// The stretches of equal level, in order.
    pub stretches: Vec<Stretch>,
    /// The first observation of the steady end; `None` without one.
    pub from: Option<usize>,
    /// The way to the steady state.
    pub course: Course,
}

/// Neighbouring observations of equal level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stretch {
    /// The place of its first observation.
    pub start: usize,
    /// The place after its last.
    pub end: usize,
    /// The median of its observations.
    pub level: f64,
}

/// The way a series reaches its steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// The level is steady from the beginning.
    Flat,
    /// The level was higher before: a time falls.
    WarmUp,
    /// The level was lower before: a time rises.
    SlowDown,
    /// There is no steady end.
    Unsettled,
}

impl Steady {
    /// The course of the values, in order of observation.
    ///
    /// `None` if there are fewer than 32 values, or one is not finite.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < VALUES_MIN || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut ends = Vec::new();
        divide(values, 0, &mut ends);
        sharpen(values, &mut ends);
        let mut start = 0;
        let stretches: Vec<Stretch> = ends
            .into_iter()
            .filter_map(|end| {
                let stretch = Stretch { start, end, level: median(&values[start..end])? };
                start = end;
                Some(stretch)
            })
            .collect();
        let last = stretches.last()?.level;
        let same = |stretch: &&Stretch| (stretch.level - last).abs() <= LEVEL_TOLERANCE * last.abs();
        let first = stretches.len() - stretches.iter().rev().take_while(same).count();
        let from = stretches[first].start;
        let settled = (values.len() - from) as f64 >= STEADY_SHARE_MIN * values.len() as f64;
        let before: f64 =
            stretches[..first].iter().map(|s| (s.level - last) * (s.end - s.start) as f64).sum();
        let course = match (settled, from) {
            (false, _) => Course::Unsettled,
            (true, 0) => Course::Flat,
            (true, _) if before > 0.0 => Course::WarmUp,
            (true, _) => Course::SlowDown,
        };
        Some(Self { stretches, from: settled.then_some(from), course })
    }
}

/// Divides values that begin at `start` of the series until no stretch contains a change, and appends the
/// ends.
///
/// Each stretch is ranked and divided again. Among a thousand observations the ranks of the first ten, all
/// high, hardly differ, however different their levels.
fn divide(values: &[f64], start: usize, ends: &mut Vec<usize>) {
    let ranks = rank_shares(values).filter(|ranks| ranks.len() >= 2 * STRETCH_MIN).unwrap_or_default();
    let ranks: Vec<f64> = ranks.iter().map(|share| share - 0.5).collect();
    let mut from = 0;
    for to in level_changes(&ranks) {
        divide(&values[from..to], start + from, ends);
        from = to;
    }
    if from > 0 {
        divide(&values[from..], start + from, ends);
    } else {
        ends.push(start + values.len());
    }
}

/// The changes of level in these ranks, which are centred at zero.
fn level_changes(ranks: &[f64]) -> Vec<usize> {
    let total = ranks.iter().map(|rank| rank * rank).sum::<f64>() / ranks.len().max(1) as f64;
    if total == 0.0 {
        return Vec::new();
    }
    let block = ranks.len().div_ceil(POINTS_MAX);
    let means = block_means(ranks, block);
    let variance = long_variance(ranks).max(VARIANCE_MIN * total);
    let penalty = PENALTY * (means.len() as f64).ln() * variance / block as f64;
    let shortest = STRETCH_MIN.div_ceil(block).max(2);
    let rough = changes(&means, penalty, shortest);
    rough.iter().map(|place| place * block).collect()
}

/// Moves each change to the place that divides the nearby observations best, by their distances from the two
/// levels. For an outlier, the two distances differ by at most the difference of the levels.
fn sharpen(values: &[f64], ends: &mut [usize]) {
    let reach = values.len().div_ceil(POINTS_MAX).max(STRETCH_MIN);
    for i in 0..ends.len().saturating_sub(1) {
        let (before, at, after) = (if i == 0 { 0 } else { ends[i - 1] }, ends[i], ends[i + 1]);
        let levels = median(&values[before..at]).zip(median(&values[at..after]));
        let first = at.saturating_sub(reach).max(before + STRETCH_MIN);
        let last = (at + reach).min(after.saturating_sub(STRETCH_MIN));
        let Some((left, right)) = levels.filter(|_| first <= last) else { continue };
        // The cost of a change at each place, relative to the first place.
        let mut cost = 0.0;
        let mut best = (cost, first);
        for (passed, value) in values[first..last].iter().enumerate() {
            cost += (value - left).abs() - (value - right).abs();
            if cost < best.0 {
                best = (cost, first + passed + 1);
            }
        }
        ends[i] = best.1;
    }
}

/// The long-run variance of the noise. For independent observations it is the variance of one.
fn long_variance(ranks: &[f64]) -> f64 {
    let sizes = std::iter::successors(Some(1usize), |size| Some(size * 2))
        .take_while(|size| ranks.len() / size >= BLOCKS_MIN);
    let variances = sizes.map(|size| {
        let means = block_means(ranks, size);
        let steps: Vec<f64> = means.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        // The difference of two means varies twice as much as either.
        size as f64 * (DEVIATION_OVER_MAD * median(&steps).unwrap_or(0.0)).powi(2) / 2.0
    });
    variances.fold(0.0, f64::max)
}

/// The means of blocks of `size`; a remainder at the end is dropped if it is less than half a block.
fn block_means(values: &[f64], size: usize) -> Vec<f64> {
    let blocks = values.chunks(size).filter(|block| 2 * block.len() >= size);
    blocks.map(|block| block.iter().sum::<f64>() / block.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    fn changes_of(steady: &Steady) -> Vec<usize> {
        steady.stretches[1..].iter().map(|stretch| stretch.start).collect()
    }

    #[test]
    fn a_warm_up_ends_where_it_ends() {
        let mut noise = Noise::new(1);
        let level = |i: usize| match i {
            0..50 => 200.0,
            50..200 => 120.0,
            _ => 100.0,
        };
        let values: Vec<f64> = (0..1000).map(|i| level(i) + 2.0 * noise.normal()).collect();
        let got = Steady::of(&values).unwrap();
        assert_eq!(changes_of(&got), [50, 200], "(seed 1)");
        assert_eq!((got.from, got.course), (Some(200), Course::WarmUp));
        for (stretch, want) in got.stretches.iter().zip([200.0, 120.0, 100.0]) {
            assert!((stretch.level - want).abs() < 1.0, "{stretch:?} (seed 1)");
        }
    }

    #[test]
    fn a_slow_down_and_an_unsettled_end_are_named() {
        let mut noise = Noise::new(2);
        let mut values: Vec<f64> =
            (0..600).map(|i| 100.0 + noise.normal() + if i < 300 { 0.0 } else { 10.0 }).collect();
        let got = Steady::of(&values).unwrap();
        assert_eq!((got.from, got.course), (Some(300), Course::SlowDown), "(seed 2)");
        values[540..].iter_mut().for_each(|value| *value += 30.0);
        let got = Steady::of(&values).unwrap();
        assert_eq!((got.from, got.course), (None, Course::Unsettled), "(seed 2)");
    }

    #[test]
    fn outliers_change_no_level() {
        let mut noise = Noise::new(3);
        let mut values: Vec<f64> = (0..2000).map(|_| 100.0 + noise.normal()).collect();
        (0..2000).step_by(97).for_each(|i| values[i] = 1e6);
        values[500..504].fill(1e9);
        let got = Steady::of(&values).unwrap();
        let found = (got.stretches.len(), got.from, got.course);
        assert_eq!(found, (1, Some(0), Course::Flat), "{got:?} (seed 3)");
    }

    #[test]
    fn levels_within_the_tolerance_are_one() {
        let mut noise = Noise::new(4);
        let values: Vec<f64> =
            (0..4000).map(|i| 100.0 + 0.2 * noise.normal() + if i < 1000 { 0.5 } else { 0.0 }).collect();
        let got = Steady::of(&values).unwrap();
        let found = (got.stretches.len(), got.from, got.course);
        assert_eq!(found, (2, Some(0), Course::Flat), "{got:?} (seed 4)");
    }

    #[test]
    fn long_series_are_divided_to_the_observation() {
        let mut noise = Noise::new(5);
        let values: Vec<f64> =
            (0..100_000).map(|i| noise.normal() + if i < 33_333 { 5.0 } else { 0.0 }).collect();
        let got = changes_of(&Steady::of(&values).unwrap());
        assert!(got.len() == 1 && got[0].abs_diff(33_333) <= 2, "{got:?} (seed 5)");
    }

    #[test]
    fn a_change_differs_from_dependent_noise() {
        // The process has a memory of 20 observations; then its level jumps by three of its deviations.
        let mut values = Noise::new(6).following(4000, 0.9);
        values[2500..].iter_mut().for_each(|value| *value += 3.0);
        let got = changes_of(&Steady::of(&values).unwrap());
        assert!(got.len() == 1 && got[0].abs_diff(2500) <= 20, "{got:?} (seed 6)");
    }

    #[test]
    fn noise_has_no_changes() {
        let alarms = |series: fn(&mut Noise) -> Vec<f64>| {
            let changed =
                |seed: &u64| Steady::of(&series(&mut Noise::new(*seed))).unwrap().stretches.len() > 1;
            (0..100).filter(changed).count()
        };
        type Shape = (&'static str, fn(&mut Noise) -> Vec<f64>);
        let shapes: [Shape; 6] = [
            ("white", |noise| noise.white(500)),
            ("short", |noise| noise.white(60)),
            ("following 0.5", |noise| noise.following(500, 0.5)),
            ("following 0.9", |noise| noise.following(800, 0.9)),
            ("heavy-tailed", |noise| (0..500).map(|_| noise.pareto(1.1)).collect()),
            ("in steps", |noise| (0..500).map(|_| if noise.unit() < 0.6 { 20.0 } else { 30.0 }).collect()),
        ];
        for (name, series) in shapes {
            let alarms = alarms(series);
            // The stated rate is one in a hundred; five or more occur once in three hundred times.
            assert!(alarms <= 4, "{name}: {alarms} of seeds 0..100");
        }
    }

    #[test]
    fn invalid_series_have_no_course() {
        assert_eq!(Steady::of(&[1.0; 31]), None);
        assert_eq!(Steady::of(&[f64::NAN; 64]), None);
        let equal = Steady::of(&[7.0; 64]).unwrap();
        assert_eq!(
            (equal.stretches, equal.course),
            (vec![Stretch { start: 0, end: 64, level: 7.0 }], Course::Flat)
        );
    }
}
