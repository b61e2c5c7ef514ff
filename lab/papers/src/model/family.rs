//! A search for programs with the optima published by Nishigaki, under which the estimator behaves as
//! published.
//!
//! Table 1 has two rows a cell: the optimum, which follows from a program by Turner's formulas, and the
//! result that the paper's machine measured under its estimator. Many programs have the optima. The search
//! starts from the fitted program and makes steps of random size and direction within its family
//! ([`fit`](mod@super::fit)). Each step that reduces the distance is kept (an evolution strategy of one
//! parent and one child).
//!
//! The distance of a program is the mean over both criteria of the errors of its working set and its product,
//! in pages. The window does not count: by the paper it makes little difference around the optimum.
//!
//! Departure: the result is the nearest of hundreds of programs, not of all.

use super::estimation::Estimation;
use super::fit::{Family, Fit};
use super::published::Synthetic;
use super::table1::{Cell, cell};
use vellum_random::Rng;
use vellum_workset::{Criterion, Ticks};

const CRITERIA: [Criterion; 2] = [Criterion::ProcessorEfficiency, Criterion::Lifetime];
/// The initial size of a step, as the change of a logarithm; its growth after a step that reduces the
/// distance, and its shrinkage after any other step.
const STEP: f64 = 0.15;
const GROWTH: f64 = 1.4;
const SHRINKAGE: f64 = 0.97;
/// Steps tried at most for each measured step that stays in the family.
const TRIES_MAX: usize = 20;

/// A program under the paper's estimator.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The program, with its optima.
    pub fit: Fit,
    /// The distance from the published figures, in pages; see the module.
    pub distance: f64,
}

fn mean(cells: &[Cell], of: impl Fn(&Cell) -> f64) -> f64 {
    cells.iter().map(of).sum::<f64>() / cells.len().max(1) as f64
}

/// Runs a program under `by` for `length` instructions of each seed.
#[must_use]
pub fn measure(synthetic: Synthetic, fit: Fit, by: Estimation, length: Ticks, seeds: &[u64]) -> Candidate {
    let off = |criterion| {
        let run = |seed: &u64| cell(synthetic, &fit, criterion, by, length, *seed);
        let cells: Vec<Cell> = seeds.iter().map(run).collect();
        let published = synthetic.measured(criterion);
        (mean(&cells, |cell| cell.outcome.sampled) - published.pages).abs()
            + (mean(&cells, |cell| cell.product) - published.product).abs()
    };
    let distance = CRITERIA.into_iter().map(off).sum::<f64>() / CRITERIA.len() as f64;
    Candidate { fit, distance }
}

/// The nearest of `steps` programs with the optima of `start`, including `start`.
///
/// # Panics
/// Never: the published tasks are valid.
#[must_use]
pub fn nearest(
    synthetic: Synthetic,
    start: Candidate,
    by: Estimation,
    steps: usize,
    length: Ticks,
    seeds: &[u64],
) -> Candidate {
    let family = Family::of(synthetic.task()).expect("the published tasks are sound");
    let mut random = Rng::new(seeds.iter().sum());
    let (mut at, mut best, mut size) = (family.unknowns(&start.fit.program), start, STEP);
    let (mut measured, mut tried) = (0, 0);
    while measured < steps && tried < steps * TRIES_MAX {
        tried += 1;
        // Usually in some directions only, since most programs nearby have other optima.
        let share = random.unit();
        let mut to = at.clone();
        for unknown in &mut to {
            let moves = random.unit() < share;
            // Approximately normal, with variance 1.
            let by: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            *unknown += if moves { size * by } else { 0.0 };
        }
        let Some(fit) = family.program(&to) else {
            size *= 1.0 - (1.0 - SHRINKAGE) / TRIES_MAX as f64;
            continue;
        };
        measured += 1;
        let next = measure(synthetic, fit, by, length, seeds);
        if next.distance < best.distance {
            (at, best, size) = (to, next, size * GROWTH);
        } else {
            size *= SHRINKAGE;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_keeps_the_published_optima_and_never_increases_the_distance() {
        let (synthetic, length) = (Synthetic::S2, Ticks(2_000_000));
        let start = measure(synthetic, synthetic.fitted(), Estimation::SOURCE, length, &[3]);
        let found = nearest(synthetic, start.clone(), Estimation::SOURCE, 4, length, &[3]);
        assert!(found.distance <= start.distance, "{found:?}");
        for (row, criterion) in found.fit.rows.iter().zip(CRITERIA) {
            let published = synthetic.optimal(criterion);
            assert_eq!(row.window, published.window);
            assert!((row.pages - published.pages).abs() < 0.1, "{row:?}");
        }
    }
}
