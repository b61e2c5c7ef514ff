//! The estimators of Nishigaki 1981, ζ, φ, χ and ψ: a job's curves at time t over the window T, smoothed.
//! S is the delay of a fault, Δ the sampling interval, w(t, T) the number of pages used in the window.
//!
//! | estimator | of | formula |
//! | --- | --- | --- |
//! | ζ(t, T) | working set z(T), pages | w(t, T), smoothed: (1 − α)·w + α·ζ before (3.2) |
//! | φ(t, T) | fault rate f(T), faults per tick | (ζ(t, T + Δ) − ζ(t, T) one sample before) / Δ (3.5) |
//! | χ(t, T) | product X(T), pages | ζ + S·φ·ζ (3.8) |
//! | ψ(t, T) | product Y(T), pages | S·φ·ζ (3.9) |
//!
//! ζ starts as the first w (3.2). Except for that start, φ is the smoothed count of the faults that the
//! window T would have had in each interval (3.7). The reason: w(t, T + Δ) counts the pages in the window at
//! the start of the interval and the pages referenced in it. The difference to the previous w is the number
//! of referenced pages that were not in the window.
//!
//! With α = 0.5, ζ averages over about three intervals, with at most one fault. φ is then mostly noise,
//! and the least χ or ψ is at some window without a recent fault. [`Control`](super::Control) corrects
//! this. These estimators are here for comparison, and for jobs that change within a few intervals.
//!
//! Invariants: windows are T = m·Δ, m from 1 without gaps; φ, χ, ψ exist for one window less than ζ.

use super::Quanta;
use vellum_workset::{Criterion, Ticks};

/// The estimators of one job.
#[derive(Debug, Clone)]
pub struct Estimator {
    alpha: f64,
    delta: Ticks,
    delay: f64,
    /// `zeta[m]` = ζ(t, m·Δ), from m = 0, where it is 0.
    zeta: Vec<f64>,
    /// ζ at the last sample point.
    before: Vec<f64>,
}

impl Estimator {
    /// An estimator without samples. `alpha` is the weight of the past (above 0, below 1), `delta` the
    /// sampling interval (at least 1), `delay` S in ticks.
    #[must_use]
    pub fn new(alpha: f64, delta: Ticks, delay: f64) -> Self {
        Self { alpha, delta, delay, zeta: vec![0.0], before: vec![0.0] }
    }

    /// A sample point: `sets[m − 1]` = w(t, m·Δ), for as many windows as are available.
    ///
    /// A window that was not available before starts afresh (3.2); windows that are no longer available are
    /// dropped.
    pub fn update(&mut self, sets: &[u64]) {
        std::mem::swap(&mut self.before, &mut self.zeta);
        self.zeta.clear();
        self.zeta.push(0.0);
        for (at, w) in sets.iter().enumerate() {
            let w = *w as f64;
            let before = match self.before.get(at + 1) {
                Some(before) => *before,
                None => {
                    self.before.push(w);
                    w
                }
            };
            self.zeta.push((1.0 - self.alpha) * w + self.alpha * before);
        }
    }

    /// ζ(t, T): the estimate of z(T), in pages.
    #[must_use]
    pub fn zeta(&self, window: Quanta) -> Option<f64> {
        self.zeta.get(window.0 as usize).copied()
    }

    /// φ(t, T): the estimate of f(T), in faults per tick.
    #[must_use]
    pub fn phi(&self, window: Quanta) -> Option<f64> {
        let m = window.0 as usize;
        Some((self.zeta.get(m + 1)? - self.before.get(m)?) / self.delta.as_f64())
    }

    /// χ or ψ, by the criterion.
    #[must_use]
    pub fn product(&self, criterion: Criterion, window: Quanta) -> Option<f64> {
        Some(criterion.product(self.zeta(window)?, self.phi(window)?, self.delay))
    }

    /// The window of least product from T = Δ to `up_to`; of equal products, the smallest window.
    #[must_use]
    pub fn best(&self, criterion: Criterion, up_to: Quanta) -> Option<Quanta> {
        let products = (1..=up_to.0).map_while(|m| Some((Quanta(m), self.product(criterion, Quanta(m))?)));
        products.reduce(|best, next| if next.1 < best.1 { next } else { best }).map(|(window, _)| window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::estimators::Counters;
    use proptest::prelude::*;
    use vellum_workset::Page;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * (1.0 + a.abs())
    }

    #[test]
    fn two_samples_by_hand() {
        let mut estimator = Estimator::new(0.5, Ticks(10), 100.0);
        estimator.update(&[4, 6]);
        // The first sample is also its own past.
        assert_eq!([1, 2].map(|m| estimator.zeta(Quanta(m)).unwrap()), [4.0, 6.0]);
        assert_eq!(estimator.phi(Quanta(1)), Some(0.2));
        estimator.update(&[2, 7]);
        // ζ(Δ) = (2 + 4) / 2, ζ(2Δ) = (7 + 6) / 2; φ(Δ) = (6.5 − 4) / 10; X = 3 + 100 · 0.25 · 3.
        assert_eq!([1, 2].map(|m| estimator.zeta(Quanta(m)).unwrap()), [3.0, 6.5]);
        assert_eq!(estimator.phi(Quanta(1)), Some(0.25));
        let product = |criterion| estimator.product(criterion, Quanta(1));
        assert_eq!(
            [Criterion::ProcessorEfficiency, Criterion::Lifetime].map(product),
            [Some(78.0), Some(75.0)]
        );
        assert_eq!((estimator.phi(Quanta(2)), estimator.zeta(Quanta(3))), (None, None));
    }

    #[test]
    fn the_least_is_found_and_of_equals_the_smallest() {
        let mut estimator = Estimator::new(0.5, Ticks(1), 1.0);
        estimator.update(&[4, 6, 6, 6, 9]);
        // Y = φ·ζ: 2·4, 0·6, 0·6, 3·6.
        assert_eq!(estimator.best(Criterion::Lifetime, Quanta(9)), Some(Quanta(2)));
        assert_eq!(estimator.best(Criterion::Lifetime, Quanta(1)), Some(Quanta(1)));
        assert_eq!(estimator.best(Criterion::Lifetime, Quanta(0)), None);
    }

    proptest! {
        /// Equations 3.3 and 3.7, summed as printed, over the counters of random references.
        #[test]
        fn the_recursions_are_the_sums(
            samples in prop::collection::vec(prop::collection::vec(0u64..12, 0..8), 2..30),
            alpha in 0.05f64..0.95,
        ) {
            const WINDOWS: usize = 6;
            let delta = 7.0;
            let mut counters = Counters::new(Quanta(WINDOWS as u32));
            let mut estimator = Estimator::new(alpha, Ticks(7), 3.0);
            let mut w = Vec::new();
            for sample in &samples {
                counters.sample(sample.iter().map(|n| Page(*n)));
                estimator.update(&counters.working_sets());
                w.push(counters.working_sets());
            }
            let n = w.len();
            for m in 1..WINDOWS {
                let past = |j: usize| w[n - 1 - j][m - 1] as f64;
                let zeta = (1.0 - alpha) * (0..n).map(|j| past(j) * alpha.powi(j as i32)).sum::<f64>()
                    + alpha.powi(n as i32) * w[0][m - 1] as f64;
                prop_assert!(close(zeta, estimator.zeta(Quanta(m as u32)).unwrap()));
                // g(t, T) of 3.6, and the last line of 3.7.
                let g = |j: usize| w[n - 1 - j][m] as f64 - w[n - 2 - j][m - 1] as f64;
                let phi = (1.0 - alpha) * (0..n - 1).map(|j| g(j) / delta * alpha.powi(j as i32)).sum::<f64>()
                    + alpha.powi(n as i32 - 1) * (w[0][m] as f64 - w[0][m - 1] as f64) / delta;
                prop_assert!(close(phi, estimator.phi(Quanta(m as u32)).unwrap()), "{phi}");
                // Under 3.1, g counts pages: it is never negative.
                prop_assert!((0..n - 1).all(|j| g(j) >= 0.0));
            }
        }
    }
}
