//! The periodogram of events in time: the strength of each frequency.
//!
//! Each event gives a unit vector: the direction, at that moment, of a clock hand that turns with frequency
//! f. If events come with frequency f (or f/2, f/3 …), their vectors agree in direction; the vectors of other
//! events cancel. For n events, the power is
//!
//! ```text
//! z(f) = |Σ exp(−2πi f t)|² / n        n if all vectors agree; if random, exponential with mean 1
//! ```
//!
//! (Schuster 1898). The events need no even spacing. For many frequencies at once, events are counted in even
//! bins and transformed. Lines that stand out are computed again from the events themselves, which also
//! exposes aliases of frequencies above the range of the bins.
//!
//! Disturbances come in bursts, and bursts raise z at all low frequencies without any period. A periodic
//! disturbance is a line that stands out from its surroundings. Therefore z is divided by the [`background`]:
//! the median on the side of the line where it is larger, but at least the value for independent events.

use std::f64::consts::{LN_2, TAU};

use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection};

use crate::transform::transform;

/// Points of the grid on each side of a line that may belong to it.
const GUARD: usize = 6;

/// The neighbourhood is a quarter of the frequency, between these two numbers of grid points. It grows with
/// the frequency because the backgrounds of machines are even on a logarithmic scale.
const REACH_MIN: usize = 64;
const REACH_MAX: usize = 512;

/// If one side has fewer points than this, only the other side counts.
const SIDE_MIN: usize = 16;

/// Steps in which a peak's surroundings are searched, each way.
const REFINE_STEPS: i32 = 8;

/// Halvings of the last step.
const REFINE_ROUNDS: usize = 14;

/// The frequencies of a periodogram: multiples of `step`, up to `count - 1` times.
pub(super) struct Grid {
    /// Cycles per second (or observation) from one point to the next: half the resolution of the span.
    pub(super) step: f64,
    /// The number of points, including frequency 0.
    pub(super) count: usize,
    fft: Arc<dyn Fft<f32>>,
}

impl Grid {
    /// A grid for events over `span`, reaching to about `highest`, or less if that would take more than
    /// `size_max` bins.
    pub(super) fn new(span: f64, highest: f64, size_max: usize) -> Self {
        // There are four bins a cycle of the highest frequency, and as many empty bins behind the events.
        let size = ((8.0 * highest * span).ceil() as usize).next_power_of_two().clamp(64, size_max);
        let step = 0.5 / span;
        let count = (size / 4).min((highest / step) as usize + 1);
        Self { step, count, fft: transform(size, FftDirection::Forward) }
    }

    /// The unnormalised transform of the events at every point of the grid.
    pub(super) fn transform(&self, events: impl Iterator<Item = f64>) -> Vec<Complex<f32>> {
        let size = self.fft.len();
        let bins = self.step * size as f64;
        let mut line = vec![Complex::new(0.0f32, 0.0); size];
        events.for_each(|at| line[((at * bins) as usize).min(size - 1)].re += 1.0);
        self.fft.process(&mut line);
        line.truncate(self.count);
        line
    }
}

/// z at one frequency, from the events themselves; 0 if there are none.
pub(super) fn power(events: &[f64], frequency: f64) -> f64 {
    if events.is_empty() {
        return 0.0;
    }
    let (mut east, mut north) = (0.0, 0.0);
    for at in events {
        let (sin, cos) = (TAU * (at * frequency).fract()).sin_cos();
        east += cos;
        north += sin;
    }
    (east * east + north * north) / events.len() as f64
}

/// z of the sizes of events (time, size), less their mean: 0 if all are alike.
///
/// If the sizes do not depend on the time, this is distributed as z of random events, however regular their
/// times.
pub(super) fn weighted_power(events: &[(f64, f64)], frequency: f64) -> f64 {
    let mean = events.iter().map(|(_, size)| size).sum::<f64>() / events.len().max(1) as f64;
    let (mut east, mut north, mut squares) = (0.0, 0.0, 0.0);
    for (at, size) in events {
        let (sin, cos) = (TAU * (at * frequency).fract()).sin_cos();
        let weight = size - mean;
        east += weight * cos;
        north += weight * sin;
        squares += weight * weight;
    }
    if squares > 0.0 { (east * east + north * north) / squares } else { 0.0 }
}

/// The highest point within `reach` of a frequency: its frequency and z there.
pub(super) fn refine(events: &[f64], frequency: f64, reach: f64) -> (f64, f64) {
    let step = reach / f64::from(REFINE_STEPS);
    let steps = (-REFINE_STEPS..=REFINE_STEPS).map(|i| frequency + f64::from(i) * step).filter(|f| *f > 0.0);
    let points = steps.map(|f| (f, power(events, f)));
    let (mut best, mut height) = points.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((frequency, 0.0));
    let mut half = step / 2.0;
    for _ in 0..REFINE_ROUNDS {
        for f in [best - half, best + half] {
            let z = power(events, f);
            if z > height {
                (best, height) = (f, z);
            }
        }
        half /= 2.0;
    }
    (best, height)
}

/// The estimated z at `place` of a periodogram without a line there, at least 1.
///
/// On the right, the side of the higher frequencies, the excess over independent events is assumed to rise
/// towards `place` with the square of the period, as for a first-order process.
pub(super) fn background(periodogram: &[f64], place: usize) -> f64 {
    let reach = (place / 4).clamp(REACH_MIN, REACH_MAX);
    let left = place.saturating_sub(GUARD + reach)..place.saturating_sub(GUARD);
    let right =
        (place + GUARD + 1).min(periodogram.len())..(place + GUARD + 1 + reach).min(periodogram.len());
    // The lowest points show the count of the events and their slowest drift, and are left out.
    let left = left.start.max(GUARD).min(left.end)..left.end;
    let level = |side: &std::ops::Range<usize>| {
        (side.len() >= SIDE_MIN)
            .then(|| middle(&periodogram[side.clone()]) / LN_2)
            .map_or(0.0, |level| level - 1.0)
    };
    let slope = ((right.start + right.end) as f64 / 2.0 / place.max(1) as f64).powi(2);
    1.0 + level(&left).max(level(&right) * slope).max(0.0)
}

fn middle(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    let half = values.len() / 2;
    *values.select_nth_unstable_by(half, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    fn periodogram(grid: &Grid, events: &[f64]) -> Vec<f64> {
        let n = events.len() as f64;
        grid.transform(events.iter().copied()).iter().map(|c| f64::from(c.norm_sqr()) / n).collect()
    }

    #[test]
    fn the_transform_agrees_with_the_sum() {
        let mut noise = Noise::new(3);
        let events: Vec<f64> = (0..500).map(|_| noise.unit() * 2.0).collect();
        let grid = Grid::new(2.0, 1000.0, 1 << 20);
        assert_eq!((grid.step, grid.count), (0.25, 4001));
        let binned = periodogram(&grid, &events);
        for place in [0usize, 1, 20, 77, 150] {
            let (got, exact) = (binned[place], power(&events, place as f64 * grid.step));
            // Far below the frequency of the bins, binning changes little (relative to the largest value, 500
            // at zero).
            assert!((got - exact).abs() < 0.1 + 0.01 * exact, "{place}: {got} and {exact}");
        }
    }

    #[test]
    fn the_power_is_numpys_and_scipys() {
        for events in crate::vectors::load().events {
            for (frequency, want) in events.frequencies.iter().zip(&events.power) {
                let got = power(&events.times, *frequency);
                let close = (got - want).abs() < 1e-6 * want.max(1.0);
                assert!(close, "{} at {frequency}: {got}, {want}", events.name);
            }
            // scipy's periodogram of the same events as an evenly sampled signal of zeros and ones.
            for (place, want) in events.even_power.iter().enumerate().skip(1) {
                let got = power(&events.times, place as f64 * events.even_step);
                assert!((got - want).abs() < 1e-6 * want.max(1.0), "{}, {place}: {got} {want}", events.name);
            }
        }
    }

    #[test]
    fn a_grid_keeps_to_its_limit() {
        let grid = Grid::new(100.0, 2000.0, 1 << 14);
        assert_eq!((grid.fft.len(), grid.count), (1 << 14, 1 << 12));
        assert_eq!(Grid::new(100.0, 0.5, 1 << 14).count, 101);
    }

    #[test]
    fn a_peak_is_found_between_the_points() {
        let events: Vec<f64> = (0..97).map(|i| f64::from(i) / 97.3).collect();
        let (frequency, z) = refine(&events, 97.0, 0.5);
        assert!((frequency - 97.3).abs() < 1e-6 && (z - 97.0).abs() < 1e-6, "{frequency} {z}");
    }

    #[test]
    fn events_at_random_have_background_one() {
        let mut noise = Noise::new(9);
        let events: Vec<f64> = (0..5000).map(|_| noise.unit()).collect();
        let grid = Grid::new(1.0, 2000.0, 1 << 20);
        let periodogram = periodogram(&grid, &events);
        for place in [100, 200, 1000, 3900] {
            let background = background(&periodogram, place);
            assert!((1.0..2.0).contains(&background), "{place}: {background} (seed 9)");
        }
    }

    #[test]
    fn a_line_is_not_its_own_background_but_a_slope_is() {
        let mut line = vec![1.0; 1000];
        (496..=504).for_each(|i| line[i] = 1e6);
        // The neighbourhood holds 1 / ln 2 on both sides; on the right its centre lies at 569.5 and it is
        // sloped from there.
        let want = 1.0 + (1.0 / LN_2 - 1.0) * (569.5f64 / 500.0).powi(2);
        assert!((background(&line, 500) - want).abs() < 1e-9, "{} {want}", background(&line, 500));
        let slope: Vec<f64> = (0..1000).map(|i| 1e6 / f64::from(i + 1).powi(2)).collect();
        for place in [40, 100, 800] {
            assert!(background(&slope, place) > slope[place], "{place}: the side that makes more counts");
        }
        assert_eq!(background(&[0.0; 8], 4), 1.0, "no neighbours: that of independent events");
    }
}
