//! The exact mean working set of a stack-model program (`slrum`): Turner's recurrences.
//!
//! The h pages referenced so far in a window are the top h of the stack. The next reference adds a page if
//! its depth exceeds h, which has the probability tail(h). The working-set size is therefore a Markov
//! chain that only climbs:
//!
//! ```text
//!   1 ──tail(1)──▶ 2 ──tail(2)──▶ 3 ─ ⋯ ─▶ N        P(h, T): probability of size h after T references
//!   ↺ 1 − tail(1)  ↺ 1 − tail(2)
//! ```
//!
//! - P(h, T) = P(h − 1, T − 1) · tail(h − 1) + P(h, T − 1) · (1 − tail(h)) (4.1), from P(1, 1) = 1 (4.2)
//! - z(T) = Σ h · P(h, T) (4.3)
//! - f(T) = z(T + 1) − z(T) = Σ P(h, T) · tail(h): the slope of equation (3.4), and exactly the fault
//!   rate, since a reference at size h faults with probability tail(h).
//!
//! All terms are probabilities and nothing is subtracted from them, so no precision is lost over millions of
//! references.
//!
//! Source: Nishigaki 1981, equations 4.1 to 4.3, after Turner and Strecker 1977.

use super::slrum::Slrum;
use vellum_workset::Ticks;

/// The distribution P(h, T) of a program's working-set size at one window.
#[derive(Debug, Clone, PartialEq)]
pub struct Turner {
    /// `tails[h]` = P(depth > h), h from 0 to N.
    tails: Vec<f64>,
    /// `sizes[h]` = P(h, T), h from 0 to N.
    sizes: Vec<f64>,
    window: u64,
}

impl Turner {
    /// The distribution at a window of one reference: exactly one page (4.2).
    fn new(program: &Slrum) -> Self {
        let tails: Vec<f64> = (0..=program.pages()).map(|h| program.tail(h)).collect();
        let mut sizes = vec![0.0; tails.len()];
        sizes[1] = 1.0;
        Self { tails, sizes, window: 1 }
    }

    /// Enlarges the window by one reference (4.1).
    fn step(&mut self) {
        for h in (1..self.sizes.len()).rev() {
            self.sizes[h] = self.sizes[h - 1] * self.tails[h - 1] + self.sizes[h] * (1.0 - self.tails[h]);
        }
        self.window += 1;
    }

    /// The distributions at the windows `step` (at least 1), 2 · `step`, … , `count` · `step`, in order.
    #[must_use]
    pub fn sampled(program: &Slrum, step: Ticks, count: u64) -> Vec<Self> {
        let mut now = Self::new(program);
        let at = |window: u64| {
            (now.window..window).for_each(|_| now.step());
            now.clone()
        };
        (1..=count).map(|n| n * step.0).map(at).collect()
    }

    /// The window T, in references.
    #[must_use]
    pub fn window(&self) -> Ticks {
        Ticks(self.window)
    }

    /// z(T), in pages (4.3).
    #[must_use]
    pub fn pages(&self) -> f64 {
        self.sizes.iter().enumerate().map(|(h, p)| h as f64 * p).sum()
    }

    /// f(T), faults per reference (3.4).
    #[must_use]
    pub fn faults(&self) -> f64 {
        self.sizes.iter().zip(&self.tails).map(|(p, tail)| p * tail).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_pages_match_a_hand_calculation() {
        // Two references: the second stays on the page with 1/2, else there are two pages. Three references:
        // P(1) = 1/4; P(2) = 1/2 · 1/2 + 1/2 · 3/4 = 5/8; P(3) = 1/2 · 1/4 = 1/8.
        let mut turner = Turner::new(&Slrum::from_tails(&[0.5, 0.25]).unwrap());
        assert_eq!((turner.pages(), turner.faults()), (1.0, 0.5));
        turner.step();
        assert_eq!((&turner.sizes[1..], turner.pages(), turner.faults()), (&[0.5, 0.5, 0.0][..], 1.5, 0.375));
        turner.step();
        assert_eq!((&turner.sizes[1..], turner.pages()), (&[0.25, 0.625, 0.125][..], 1.875));
    }

    #[test]
    fn probabilities_stay_probabilities_over_millions_of_references() {
        let tails: Vec<f64> = (1..50).map(|h| 1e-3 * 0.85f64.powi(h)).collect();
        let program = Slrum::from_tails(&tails).unwrap();
        for turner in Turner::sampled(&program, Ticks(1_000_000), 4) {
            assert!((turner.sizes.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{turner:?}");
        }
        assert_eq!(Turner::sampled(&program, Ticks(1), 1)[0].window(), Ticks(1));
    }
}
