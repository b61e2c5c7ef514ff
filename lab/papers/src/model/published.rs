//! The synthetic programs S1, S2 and S3 of Nishigaki 1981, and its Table 1.
//!
//! | program, PE / LT | window, 10⁶ instructions | working set, pages | product (X / Y), pages |
//! | --- | --- | --- | --- |
//! | S1 | 1.2 / 4.0 | 34.2 / 44.1 | 48.1 / 9.38 |
//! | S2 | 2.6 / 2.6 | 50.0 / 50.0 | 50.0 / 0.0 |
//! | S3 | 0.3 / 0.4 | 10.7 / 11.3 | 15.2 / 4.55 |
//!
//! X and Y are products of memory and time: of all time, and of the time waiting for faults. PE (processor
//! efficiency) minimises X, and LT (lifetime) minimises Y. One reference is one instruction: the paper
//! gives windows and S (the paging delay) in instructions, formulas in references.
//!
//! We do not have the paper's figure of the curves. S1's Y still falls at 4.0·10⁶, where the table has its
//! optimum. There, 5.9 of the program's pages are not yet in the working set. In no program found by the
//! fit does Y stay at 9.38 or above while those pages come in. We therefore take 4.0·10⁶ for the largest
//! window of the paper: [`RANGE`].
//!
//! S3's row contradicts itself by 0.02 pages. Its Y at 0.3·10⁶ is X − z, at most 4.60, and must be above
//! 4.55. Then z at 0.4·10⁶ is at most 11.23, but 11.3 is printed. The program found has z = 10.8 and X =
//! 15.3 instead of 10.7 and 15.2, and otherwise the printed figures.
//!
//! Source: Nishigaki 1981, Table 1 and section 4. The paper does not give its programs. Those in
//! `tails.txt` were fitted by least squares, so that Turner's formulas give the optimal rows: each product
//! falls up to its published window and does not fall from there on. Many programs have the same optima.

use crate::model::{Slrum, Turner};
use vellum_workset::{Criterion, Ticks};

/// S, the paging delay of section 4: 80,000 instructions.
pub const DELAY: f64 = 80_000.0;
/// Δ of section 4. The optimal windows of S3 are no multiples of it.
pub const DELTA: Ticks = Ticks(200_000);
/// α of equation 3.2 in section 4.
pub const ALPHA: f64 = 0.5;
/// The difference between products that the paper's controller ignores, in pages. The paper does not give it;
/// with this value our programs come nearest to the measured rows of its Table 1.
pub const TOLERANCE: u32 = 9;
/// Windows are published to a tenth of a million.
pub const STEP: Ticks = Ticks(100_000);
/// The largest window tried.
pub const RANGE: Ticks = Ticks(4_000_000);
/// Number of pages of each program.
pub const PAGES: usize = 50;
/// Products that differ by less are equal, in pages: a tenth of the last published place of X.
const PLACE: f64 = 0.01;
/// The programs, as their distributions of stack depths.
const TAILS: &str = include_str!("tails.txt");

/// An optimum: a published one, or that of a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Optimum {
    /// The product that is least.
    pub criterion: Criterion,
    /// The window where it is least.
    pub window: Ticks,
    /// z at this window, in pages.
    pub pages: f64,
    /// The product at this window, in pages.
    pub product: f64,
}

/// A program with published optima.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The program.
    pub program: Slrum,
    /// Its distributions at all windows, [`STEP`] apart, up to [`RANGE`].
    pub windows: Vec<Turner>,
    /// Its optima under PE and LT.
    pub rows: [Optimum; 2],
}

/// One of the synthetic programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Synthetic {
    /// Its X has a minimum within the range.
    S1,
    /// Its X falls until the whole program is resident.
    S2,
    /// Its X rises from the smallest windows on.
    S3,
}

/// The paper's measurement in one cell of Table 1, under its estimator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The average window, in instructions.
    pub window: f64,
    /// The average working set, in pages.
    pub pages: f64,
    /// The product, in pages.
    pub product: f64,
}

impl Synthetic {
    /// All three programs.
    pub const ALL: [Self; 3] = [Self::S1, Self::S2, Self::S3];

    /// Its name in the paper.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::S3 => "S3",
        }
    }

    /// The optimal row of Table 1.
    #[must_use]
    pub fn optimal(self, criterion: Criterion) -> Optimum {
        let (window, pages, product) = match (self, criterion) {
            (Self::S1, Criterion::ProcessorEfficiency) => (1_200_000, 34.2, 48.1),
            (Self::S2, Criterion::ProcessorEfficiency) => (2_600_000, 50.0, 50.0),
            (Self::S3, Criterion::ProcessorEfficiency) => (300_000, 10.7, 15.2),
            (Self::S1, Criterion::Lifetime) => (4_000_000, 44.1, 9.38),
            (Self::S2, Criterion::Lifetime) => (2_600_000, 50.0, 0.0),
            (Self::S3, Criterion::Lifetime) => (400_000, 11.3, 4.55),
        };
        Optimum { criterion, window: Ticks(window), pages, product }
    }

    /// The measured row of Table 1.
    #[must_use]
    pub fn measured(self, criterion: Criterion) -> Measured {
        let (window, pages, product) = match (self, criterion) {
            (Self::S1, Criterion::ProcessorEfficiency) => (0.82e6, 32.5, 48.5),
            (Self::S2, Criterion::ProcessorEfficiency) => (1.76e6, 49.0, 55.1),
            (Self::S3, Criterion::ProcessorEfficiency) => (0.56e6, 11.1, 15.8),
            (Self::S1, Criterion::Lifetime) => (2.74e6, 42.5, 9.83),
            (Self::S2, Criterion::Lifetime) => (2.18e6, 49.8, 0.001),
            (Self::S3, Criterion::Lifetime) => (1.20e6, 15.8, 6.30),
        };
        Measured { window, pages, product }
    }

    /// A program of [`PAGES`] pages with the optimal rows of Table 1.
    ///
    /// # Panics
    /// Never: `tails.txt` has a line for each depth.
    #[must_use]
    pub fn fitted(self) -> Fit {
        let of_line = |line: &str| line.split(' ').nth(1 + self as usize)?.parse().ok();
        let tails: Vec<f64> = TAILS.lines().skip(1).filter_map(of_line).collect();
        let program = Slrum::from_tails(&tails).expect("tails fall");
        let windows = Turner::sampled(&program, STEP, RANGE.0 / STEP.0);
        let rows = [Criterion::ProcessorEfficiency, Criterion::Lifetime];
        let rows = rows.map(|criterion| optimum(&windows, criterion).expect("there are windows"));
        Fit { program, windows, rows }
    }
}

/// The window with the least product among the distributions, with z and the product there: the smallest
/// window whose product is within [`PLACE`] of the least, since it costs less memory. `None` without
/// distributions.
fn optimum(windows: &[Turner], criterion: Criterion) -> Option<Optimum> {
    let product = |turner: &Turner| criterion.product(turner.pages(), turner.faults(), DELAY);
    let products: Vec<f64> = windows.iter().map(product).collect();
    let least = products.iter().copied().reduce(f64::min)?;
    let at = products.iter().position(|product| *product <= least + PLACE)?;
    let turner = &windows[at];
    Some(Optimum { criterion, window: turner.window(), pages: turner.pages(), product: products[at] })
}
