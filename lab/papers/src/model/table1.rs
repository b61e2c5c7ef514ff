//! Nishigaki 1981, Table 1: the synthetic programs with estimated windows, compared with their optimum.
//!
//! A cell of the table is a program and a criterion. The program found by [`Synthetic::fitted`] runs as a
//! sequence of references. Two controllers choose its window:
//! - the paper's, at the paper's sampling interval Δ, with a tolerance that the paper does not give
//!   ([`TOLERANCE`](crate::model::published::TOLERANCE));
//! - ours, at a finer Δ, of which the optimal windows of S3 are multiples.
//!
//! The goal ([`GOAL`]) and the errors are fractions of the program's least X, the product of memory and
//! time, for both criteria. A large relative error of Y costs nothing while Y is near zero.
//!
//! Source: Nishigaki 1981, section 4 and Table 1. Departure: counting begins after a warm-up in which
//! every page has been referenced, since the optimum is that of the stationary program.

use crate::model::estimators::Quanta;
use crate::model::published::{DELAY, DELTA, Fit, Optimum, RANGE, Synthetic};
use crate::model::trial::{Estimation, Manager, Outcome, Trial, run};
use vellum_workset::{Criterion, Ticks};

/// Bound of the distance of a product from its optimum, in parts of the least X.
pub const GOAL: f64 = 0.02;
/// Δ for our controller.
pub const DELTA_FINE: Ticks = Ticks(50_000);
/// Instructions before counting begins: twice the largest window.
pub const WARM_UP: Ticks = Ticks(8_000_000);
/// Instructions counted by default: some minutes of a machine of the paper's time.
pub const LENGTH: Ticks = Ticks(400_000_000);
/// The first window of a controller.
const START: Ticks = Ticks(1_000_000);

/// A cell of Table 1.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The program.
    pub synthetic: Synthetic,
    /// The criterion minimised.
    pub criterion: Criterion,
    /// The optimum of the program that was run.
    pub optimum: Optimum,
    /// The result of the run.
    pub outcome: Outcome,
    /// The product, in pages.
    pub product: f64,
    /// The product's distance from the optimum, in parts of the program's least X; negative if better.
    pub off: f64,
    /// The number of sample points at which the controller computed the curve, and of all sample points.
    pub reviews: (u64, u64),
}

/// Runs a cell. `fit` is the result of [`Synthetic::fitted`] for `synthetic`.
///
/// # Panics
/// If the fit belongs to another program and lacks a row.
#[must_use]
pub fn cell(
    synthetic: Synthetic,
    fit: &Fit,
    criterion: Criterion,
    by: Estimation,
    length: Ticks,
    seed: u64,
) -> Cell {
    let row = |of| *fit.rows.iter().find(|row| row.criterion == of).expect("a fit of a synthetic program");
    let delta = match by {
        Estimation::Source { .. } => DELTA,
        Estimation::Remembering => DELTA_FINE,
    };
    let quanta = |ticks: Ticks| Quanta((ticks.0 / delta.0) as u32);
    let horizon = Quanta(quanta(RANGE).0 + 2);
    let trial = Trial { delta, warm_up: WARM_UP, length, horizon, seed };
    let mut manager = by.manager(criterion, delta, DELAY, quanta(START), quanta(RANGE));
    let outcome = run(&fit.program, trial, &mut manager);
    let samples = (WARM_UP.0 + length.0) / delta.0;
    let reviews = match &manager {
        Manager::Control(control) => control.reviews(),
        Manager::Owe(_) | Manager::Fixed(_) => samples,
    };
    let optimum = row(criterion);
    let product = outcome.product(criterion, DELAY);
    let off = (product - optimum.product) / row(Criterion::ProcessorEfficiency).product;
    Cell { synthetic, criterion, optimum, outcome, product, off, reviews: (reviews, samples) }
}
