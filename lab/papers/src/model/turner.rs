//! The exact mean working set of a stack-model program (`slrum`): Turner's recurrences.
//!
//! Within a window, the pages referenced until now are the top h of the stack. The next reference adds a
//! page if its depth exceeds h, which has the probability tail(h). The working-set size is therefore a
//! Markov chain that only climbs:
//!
//! ```text
//!   1 ──tail(1)──▶ 2 ──tail(2)──▶ 3 ─ ⋯ ─▶ N        P(h, T): probability of size h after T references
//!   ↺ 1 − tail(1)  ↺ 1 − tail(2)
//! ```
//!
//! - P(h, T) = P(h − 1, T − 1) · tail(h − 1) + P(h, T − 1) · (1 − tail(h)) (4.1), from P(1, 1) = 1 (4.2)
//! - z(T) = Σ h · P(h, T) (4.3)
//! - f(T) = z(T + 1) − z(T) = Σ P(h, T) · tail(h): the slope of equation (3.4), and exactly the fault rate,
//!   since a reference at h faults with probability tail(h).
//!
//! [`Turner::sampled`] reaches windows of millions of references. One reference is a matrix with two
//! diagonals, whose powers are found by squaring. All entries are probabilities and nothing is subtracted,
//! so no precision is lost.
//!
//! Source: Nishigaki, equations 4.1 to 4.3, after Turner and Strecker 1977. Squaring is ours.

use super::slrum::Slrum;
use vellum_workset::Ticks;

/// The most pages for which powers are computed: squaring costs their cube.
const TURNER_PAGES_MAX: usize = 512;

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

    /// The distributions at the windows `step`, 2 · `step`, … , `count` · `step`, in order.
    ///
    /// `None` if the program has more than `TURNER_PAGES_MAX` pages or the step is zero.
    #[must_use]
    pub fn sampled(program: &Slrum, step: Ticks, count: usize) -> Option<Vec<Self>> {
        if program.pages() > TURNER_PAGES_MAX || step.0 == 0 {
            return None;
        }
        let mut now = Self::new(program);
        let one = Climb::one(&now.tails);
        // The distribution starts at a window of one reference, so the first step needs one reference fewer.
        let before = one.power(step.0 - 1);
        let whole = before.then(&one);
        now.sizes = before.applied(&now.sizes);
        now.window = step.0;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let next = Self {
                tails: now.tails.clone(),
                sizes: whole.applied(&now.sizes),
                window: now.window + step.0,
            };
            all.push(std::mem::replace(&mut now, next));
        }
        Some(all)
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

/// The chain over some number of references: `rows[from][to − from]`; it never falls.
#[derive(Debug, Clone)]
struct Climb {
    rows: Vec<Vec<f64>>,
}

impl Climb {
    fn one(tails: &[f64]) -> Self {
        let last = tails.len() - 1;
        let row = |h: usize| {
            let mut row = vec![0.0; last - h + 1];
            row[0] = 1.0 - tails[h];
            if h < last {
                row[1] = tails[h];
            }
            row
        };
        Self { rows: (0..=last).map(row).collect() }
    }

    fn unit(states: usize) -> Self {
        let row = |h: usize| {
            let mut row = vec![0.0; states - h];
            row[0] = 1.0;
            row
        };
        Self { rows: (0..states).map(row).collect() }
    }

    /// The chain over this one's references and then those of `other`.
    fn then(&self, other: &Self) -> Self {
        let mut rows: Vec<Vec<f64>> = self.rows.iter().map(|row| vec![0.0; row.len()]).collect();
        for (from, out) in rows.iter_mut().enumerate() {
            for (up, p) in self.rows[from].iter().enumerate().filter(|(_, p)| **p > 0.0) {
                for (sum, q) in out[up..].iter_mut().zip(&other.rows[from + up]) {
                    *sum += p * q;
                }
            }
        }
        Self { rows }
    }

    fn power(&self, mut exponent: u64) -> Self {
        let mut out = Self::unit(self.rows.len());
        let mut square = self.clone();
        loop {
            if exponent & 1 == 1 {
                out = out.then(&square);
            }
            exponent >>= 1;
            if exponent == 0 {
                return out;
            }
            square = square.then(&square);
        }
    }

    fn applied(&self, sizes: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; sizes.len()];
        for (from, p) in sizes.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            for (sum, q) in out[from..].iter_mut().zip(&self.rows[from]) {
                *sum += p * q;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Turner {
        /// Enlarges the window by one reference (4.1).
        fn step(&mut self) {
            for h in (1..self.sizes.len()).rev() {
                self.sizes[h] = self.sizes[h - 1] * self.tails[h - 1] + self.sizes[h] * (1.0 - self.tails[h]);
            }
            self.window += 1;
        }
    }

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
    fn squaring_matches_stepping_and_the_fault_rate_is_the_slope() {
        let tails: Vec<f64> = (1..30).map(|h| 0.2 * 0.8f64.powi(h)).collect();
        let program = Slrum::from_tails(&tails).unwrap();
        let sampled = Turner::sampled(&program, Ticks(37), 20).unwrap();
        let mut turner = Turner::new(&program);
        for expected in &sampled {
            while turner.window() < expected.window() {
                let (z, f) = (turner.pages(), turner.faults());
                turner.step();
                assert!((turner.pages() - z - f).abs() < 1e-13);
            }
            for (h, (a, b)) in turner.sizes.iter().zip(&expected.sizes).enumerate() {
                assert!((a - b).abs() < 1e-12 * b + 1e-300, "P({h}, {:?}): {a} and {b}", turner.window());
            }
        }
        assert_eq!(Turner::sampled(&program, Ticks(1), 1).unwrap()[0].window(), Ticks(1));
    }

    #[test]
    fn probabilities_stay_probabilities_over_millions_of_references() {
        let tails: Vec<f64> = (1..50).map(|h| 1e-3 * 0.85f64.powi(h)).collect();
        let program = Slrum::from_tails(&tails).unwrap();
        for turner in Turner::sampled(&program, Ticks(1_000_000), 8).unwrap() {
            assert!((turner.sizes.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{turner:?}");
        }
        let large = Slrum::from_tails(&[1e-9; TURNER_PAGES_MAX]).unwrap();
        assert_eq!(Turner::sampled(&large, Ticks(10), 1), None);
        assert_eq!(Turner::sampled(&program, Ticks(0), 1), None);
    }
}
