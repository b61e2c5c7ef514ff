//! The cost of a memory limit: the time that a program loses if it may hold only a given number of pages.
//!
//! A limit of m pages works like the working set that holds m pages on average: the window adapts to the
//! limit. The fault rate under a limit is therefore f at the window where z = m. Each fault that would not
//! occur with all memory costs the delay S:
//!
//! slowdown(m) = S · (f at z = m − f at the largest window)
//!
//! Faults at the largest window (first references above all) occur under any limit and are not part of its
//! cost.
//!
//! An average over all time would offset a hungry phase by a quiet one, but a limit does not grow in the
//! hungry phase. The slowdown is therefore computed for each stretch of the [`History`], and then averaged.
//!
//! The rise of f below the smallest window was not measured. Since z is concave, each missing page that a
//! window of T holds causes at least one fault in T ticks. The result is then marked as a lower bound.
//!
//! Source: Denning and Schwartz 1972 for reading a limit off the curve; tests check the error on programs
//! with exact curves.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::history::History;

/// The precision of sizes, as a part of the largest.
const PAGES_PRECISION: f64 = 1e-4;

/// The additional time of a program under a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    /// The additional time as a part of the time with all memory: 0.02 is 2 %.
    pub part: f64,
    /// True if `part` is a lower bound: the limit lies below the smallest window, where there are no
    /// measurements.
    pub at_least: bool,
}

/// A recommended size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The smallest limit, in pages, with an acceptable slowdown.
    pub pages: f64,
    /// The expected slowdown at this limit.
    pub slowdown: Slowdown,
}

impl Curve {
    /// The slowdown under a limit of `pages` at `delay` ticks a fault.
    #[must_use]
    pub fn slowdown(&self, pages: f64, delay: f64) -> Slowdown {
        let floor = self.last().faults;
        let first = self.first();
        let faults = match self.at_pages(pages) {
            Some(point) => point.faults,
            None if pages < first.pages => first.faults.max((first.pages - pages) / first.window),
            None => floor,
        };
        Slowdown { part: delay * (faults - floor).max(0.0), at_least: pages < first.pages }
    }
}

impl History {
    /// The slowdown under a limit of `pages` at `delay` ticks a fault, over the whole history.
    #[must_use]
    pub fn slowdown(&self, pages: f64, delay: f64) -> Slowdown {
        mean(&self.curves().collect::<Vec<_>>(), pages, delay)
    }

    /// The error of the slowdown as a mean over differing stretches: twice its standard error. `None` with
    /// fewer than two stretches.
    #[must_use]
    pub fn slowdown_doubt(&self, pages: f64, delay: f64) -> Option<f64> {
        let parts: Vec<(f64, f64)> =
            self.curves().map(|(weight, curve)| (weight, curve.slowdown(pages, delay).part)).collect();
        if parts.len() < 2 {
            return None;
        }
        let mean: f64 = parts.iter().map(|(weight, part)| weight * part).sum();
        let squares: f64 = parts.iter().map(|(weight, part)| (weight * (part - mean)).powi(2)).sum();
        let count = parts.len() as f64;
        Some(2.0 * (squares * count / (count - 1.0)).sqrt())
    }

    /// The smallest limit at which the slowdown, at `delay` ticks a fault, is at most `part`.
    ///
    /// `None` without samples. The limit is never below the smallest window.
    #[must_use]
    pub fn advice(&self, delay: f64, part: f64) -> Option<Advice> {
        let curves: Vec<(f64, Curve)> = self.curves().collect();
        let most = curves.iter().map(|(_, curve)| curve.last().pages).reduce(f64::max)?;
        let least = curves.iter().map(|(_, curve)| curve.first().pages).reduce(f64::max)?;
        let (mut low, mut high) = (least, most);
        if mean(&curves, low, delay).part <= part {
            high = low;
        }
        while high - low > most * PAGES_PRECISION {
            let middle = low + (high - low) / 2.0;
            if mean(&curves, middle, delay).part <= part { high = middle } else { low = middle }
        }
        Some(Advice { pages: high, slowdown: mean(&curves, high, delay) })
    }
}

fn mean(curves: &[(f64, Curve)], pages: f64, delay: f64) -> Slowdown {
    let mut all = Slowdown { part: 0.0, at_least: false };
    for (weight, curve) in curves {
        let slowdown = curve.slowdown(pages, delay);
        all.part += weight * slowdown.part;
        all.at_least |= slowdown.at_least;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve_of(n: f64) -> (Vec<f64>, Vec<f64>) {
        let windows: Vec<f64> = (0..60).map(|i| 2f64.powf(f64::from(i) / 4.0) * 10.0).collect();
        let pages = windows.iter().map(|w| n * (1.0 - (-w * 1e-3).exp())).collect();
        (windows, pages)
    }

    #[test]
    fn by_hand() {
        let curve = Curve::of_counts(&[1.0, 2.0, 4.0], &[5.0, 8.0, 10.0], &[3.0, 1.0, 0.5]).unwrap();
        assert_eq!(curve.slowdown(8.0, 0.1), Slowdown { part: 0.05, at_least: false });
        assert_eq!(curve.slowdown(20.0, 0.1), Slowdown { part: 0.0, at_least: false });
        assert_eq!(curve.slowdown(4.0, 0.1), Slowdown { part: 0.25, at_least: true });
        // Four of five pages are missing: each comes back within the smallest window, a tick.
        assert!((curve.slowdown(1.0, 0.1).part - 0.35).abs() < 1e-12);
    }

    #[test]
    fn a_hungry_phase_is_not_paid_for_by_a_quiet_one() {
        let (windows, small) = curve_of(100.0);
        let (_, large) = curve_of(1000.0);
        let mut history = History::new(windows, 1.0);
        for sample in 0..16 {
            history.push(1.0, if sample < 12 { &small } else { &large }, &[]);
        }
        // z is 325 on average: by the mean curve alone, a limit of 900 is never reached.
        assert_eq!(history.mean().unwrap().slowdown(900.0, 100.0).part, 0.0);
        assert!(history.slowdown(900.0, 100.0).part > 2.0);
        let advice = history.advice(100.0, 0.02).unwrap();
        assert!((985.0..1000.0).contains(&advice.pages) && advice.slowdown.part <= 0.02, "{advice:?}");
    }

    #[test]
    fn the_doubt_follows_from_differing_stretches() {
        let (windows, small) = curve_of(100.0);
        let (_, large) = curve_of(200.0);
        let of = |stretches: &[&Vec<f64>]| {
            let mut history = History::new(windows.clone(), 1.0);
            stretches.iter().for_each(|pages| history.push(1.0, pages, &[]));
            history.slowdown_doubt(90.0, 100.0)
        };
        assert_eq!(of(&[&small]), None);
        assert!(of(&[&small, &small]).unwrap() < 1e-9);
        // For two values, the standard error is half their difference.
        let apart = |pages: &Vec<f64>| {
            let mut history = History::new(windows.clone(), 1.0);
            history.push(1.0, pages, &[]);
            history.slowdown(90.0, 100.0).part
        };
        let differ = apart(&large) - apart(&small);
        assert!((of(&[&small, &large]).unwrap() - differ).abs() < 1e-9 * differ);
        assert!(of(&[&small, &large, &small, &large]).unwrap() < differ);
    }

    #[test]
    fn advice_is_the_smallest_acceptable_size() {
        let (windows, pages) = curve_of(100.0);
        let mut history = History::new(windows, 1.0);
        history.push(1.0, &pages, &[]);
        // f = (n − z)·10⁻³: at S = 100 a part of 0.5 leaves five pages out.
        let advice = history.advice(100.0, 0.5).unwrap();
        assert!((advice.pages - 95.0).abs() < 0.7, "{advice:?}");
        assert!(history.slowdown(advice.pages - 1.0, 100.0).part > 0.5);
        assert_eq!(History::new(vec![1.0, 2.0], 1.0).advice(1.0, 0.1), None);
    }
}
