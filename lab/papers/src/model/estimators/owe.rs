//! The controller of a job's window in Nishigaki 1981. It chooses the window of the least χ or ψ
//! (estimated products) of up to M intervals, and raises M if the products still fall there.
//!
//! Pages older than the window T = M·Δ are replaced, so w is available up to M + 1, and χ up to M. The
//! chosen window is only the best of these. M is raised as follows:
//!
//! ```text
//!  χ ┤ ╲                             the least is at M (3.11), and it still falls there (3.12):
//!    ┤  ╲__                          replace nothing this time, and let the window be M + 1
//!    ┤     ╲___?
//!    └──┬──┬──┬──┬─
//!       1  …  M  M+1
//! ```
//!
//! Source: Nishigaki 1981, section 3, equations 3.10 to 3.12. Departure: 3.12 as printed compares χ at M
//! with χ at M + 1, which is not available (φ there would need M + 2). The printed condition is also
//! reversed: a much larger χ at M + 1 would be a reason not to raise M. We take it to mean that the
//! products still fall markedly towards M, and compare χ at M with χ at M − 1.
//!
//! According to section 4 (on Table 1), the controller treats a window as nearly optimal if changing it
//! makes a small absolute difference. The paper gives no number; here it is a parameter. The window stays
//! if its product is within this number of the least product. The products fall markedly if they fall by
//! more than half of it. Without this tolerance, noise decides at every sample point, as about three
//! intervals have at most one fault.

use super::{Estimator, Quanta};
use vellum_workset::Criterion;

/// The least fall of the product from M − 1 to M, in pages, at which a wider window is tried.
const FALL_MIN: f64 = 0.01;

/// A job's window under the paper's controller.
#[derive(Debug, Clone)]
pub struct Owe {
    estimator: Estimator,
    criterion: Criterion,
    window: Quanta,
    window_max: Quanta,
    /// A window counts as optimal if its product is less than this many pages above the least.
    tolerance: f64,
}

/// The decision of a controller at a sample point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The new window.
    pub window: Quanta,
    /// True if pages outside the window are to be replaced now; false while the window is being widened.
    pub replace: bool,
}

impl Owe {
    /// A controller that starts from `window` (at least Δ) and never goes beyond `window_max`. With a
    /// tolerance of 0, only the least product counts, and any fall.
    #[must_use]
    pub fn new(
        estimator: Estimator,
        criterion: Criterion,
        window: Quanta,
        window_max: Quanta,
        tolerance: f64,
    ) -> Self {
        let window_max = window_max.max(Quanta(1));
        Self { estimator, criterion, window: window.clamp(Quanta(1), window_max), window_max, tolerance }
    }

    /// A sample point: `sets[m − 1]` = w(t, m·Δ), of which those up to M + 1 are used.
    ///
    /// If there are fewer than M + 1, as before the first pages are old enough, the decision uses these.
    pub fn decide(&mut self, sets: &[u64]) -> Step {
        self.estimator.update(&sets[..sets.len().min(self.window.0 as usize + 1)]);
        let Some(best) = self.estimator.best(self.criterion, self.window) else {
            return Step { window: self.window, replace: false };
        };
        let widen = best == self.window && self.window < self.window_max && self.still_falls();
        if widen {
            self.window = Quanta(best.0 + 1);
        } else if !self.is_near(best) {
            self.window = best;
        }
        Step { window: self.window, replace: !widen }
    }

    /// A window of no intervals faults at every reference, so the product falls from there.
    fn still_falls(&self) -> bool {
        let product = |m| self.estimator.product(self.criterion, Quanta(m));
        let before = if self.window.0 > 1 { product(self.window.0 - 1) } else { Some(f64::INFINITY) };
        let fall_min = FALL_MIN.max(self.tolerance / 2.0);
        before.zip(product(self.window.0)).is_some_and(|(before, here)| before - here > fall_min)
    }

    /// True if the window's product is as good as the product of `best`.
    fn is_near(&self, best: Quanta) -> bool {
        let product = |window| self.estimator.product(self.criterion, window);
        product(self.window).zip(product(best)).is_some_and(|(here, least)| here - least < self.tolerance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_workset::Ticks;

    fn tolerating(tolerance: f64, window: u32, window_max: u32) -> Owe {
        let estimator = Estimator::new(0.5, Ticks(1), 1.0);
        Owe::new(estimator, Criterion::Lifetime, Quanta(window), Quanta(window_max), tolerance)
    }

    fn owe(window: u32, window_max: u32) -> Owe {
        tolerating(0.0, window, window_max)
    }

    #[test]
    fn a_window_stuck_at_its_end_is_widened_and_nothing_is_replaced() {
        // Y = φ·ζ: 4·6 at 1, 2·10 at 2, 1·12 at 3: it falls to the end.
        let mut owe = owe(3, 10);
        assert_eq!(owe.decide(&[6, 10, 12, 13]), Step { window: Quanta(4), replace: false });
    }

    #[test]
    fn a_minimum_inside_the_range_is_set_at_once() {
        // Y: 4·6 at 1, 0·10 at 2, 5·10 at 3.
        let mut owe = owe(3, 10);
        assert_eq!(owe.decide(&[6, 10, 10, 15]), Step { window: Quanta(2), replace: true });
    }

    #[test]
    fn flat_is_not_falling_and_the_limit_holds() {
        assert_eq!(owe(2, 2).decide(&[6, 10, 12]), Step { window: Quanta(2), replace: true });
        // Y is 0 from the first window on: the smallest window suffices.
        assert_eq!(owe(3, 10).decide(&[6, 6, 6, 6]), Step { window: Quanta(1), replace: true });
    }

    #[test]
    fn a_window_within_the_tolerance_stays() {
        // Y: 4·6 at 1, 0·10 at 2, 1·10 at 3.
        let sets = [6, 10, 10, 11];
        assert_eq!(tolerating(10.0, 3, 10).decide(&sets), Step { window: Quanta(2), replace: true });
        assert_eq!(tolerating(11.0, 3, 10).decide(&sets), Step { window: Quanta(3), replace: true });
        // The product falls by 8 from 2 to 3, which is or is not marked, depending on the tolerance.
        let falling = [6, 10, 12, 13];
        assert_eq!(tolerating(15.0, 3, 10).decide(&falling), Step { window: Quanta(4), replace: false });
        assert_eq!(tolerating(16.0, 3, 10).decide(&falling), Step { window: Quanta(3), replace: true });
    }

    #[test]
    fn the_smallest_window_can_grow() {
        assert_eq!(owe(1, 10).decide(&[6, 10]), Step { window: Quanta(2), replace: false });
        assert_eq!(owe(0, 0).window, Quanta(1));
        assert_eq!(owe(1, 10).decide(&[]), Step { window: Quanta(1), replace: false });
    }
}
