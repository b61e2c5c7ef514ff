//! A fit of a stack-model program to an optimum in Table 1 of Nishigaki 1981.
//!
//! The fit finds the probabilities q(k) for which Turner's formulas give the published row.
//!
//! For its synthetic programs the paper gives only the optima: window, pages, product. Many programs have
//! such optima. The fit uses tails that fall by straight lines between a few depths on a logarithmic scale,
//! and moves them until
//!
//! - z and the product at each published window are the published ones;
//! - each product falls up to its published window and rises (or stays) from there on;
//! - [`optimum`] picks the published window, so that the row and the rule agree.
//!
//! ```text
//!  ln tail ┤╲                 ● a given depth, moved up and down by the fit;
//!          ┤ ●╲__               never above the one before it
//!          ┤     ●───●____
//!          └────────────────●▶ depth
//! ```
//!
//! Departure: the paper gives no rule for windows whose products differ by less than it prints. [`optimum`]
//! takes the smallest window whose product is within [`PLACE`] of the least, since it costs less memory.

use crate::model::least_squares::minimise;
use crate::model::{Slrum, Turner};
use vellum_workset::{Criterion, Ticks};

/// Products that differ by less are equal, in pages: a tenth of the last published place of X.
pub const PLACE: f64 = 0.01;

const ROUNDS_MAX: usize = 400;
/// Errors of z and of the products are scaled by this, half of the published figures' last place in pages.
/// Such an error counts as much as a product that rises or falls wrongly by [`BEND`].
const PAGES_TOLERANCE: f64 = 0.05;
const X_TOLERANCE: f64 = 0.05;
const Y_TOLERANCE: f64 = 0.01;
const BEND: f64 = 0.001;
/// The weight of smooth tails, for tails that no published figure determines.
const SMOOTHNESS: f64 = 0.03;
/// Bound of the errors of z and of a product, in pages, for a program to have that optimum.
const PAGES_OFF_MAX: f64 = 0.1;
const PRODUCT_OFF_MAX: f64 = 0.15;
/// The least drop between two depths, as a fraction of the tail: the difference of equal tails has no
/// logarithm.
const DROP_MIN: f64 = 1e-4;

/// A published optimum.
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

/// The task of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitTask {
    /// Depths from 1 on, rising, the last one less than the number of pages, each with a first guess of its
    /// tail.
    pub start: Vec<(usize, f64)>,
    /// S, in references.
    pub delay: f64,
    /// The windows tried are the multiples of this step, which include the published ones, …
    pub step: Ticks,
    /// … up to this.
    pub range: Ticks,
    /// The published optima.
    pub rows: Vec<Optimum>,
}

/// The result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The program.
    pub program: Slrum,
    /// Its optima by [`optimum`], in the order of the task's rows.
    pub rows: Vec<Optimum>,
}

/// Why no fit is possible.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// The depths or first guesses form no program.
    #[error("the first guess is no program: depths must rise from 1 and tails must fall and be above 0")]
    Start,
    /// A window is not among the windows tried.
    #[error(
        "the window {window:?} is no multiple of {step:?} up to {range:?}: choose a step that divides it"
    )]
    Window {
        /// The published window.
        window: Ticks,
        /// The requested step.
        step: Ticks,
        /// The requested range.
        range: Ticks,
    },
}

/// The window with the least product among the distributions, with z and the product there: the smallest
/// window whose product is within [`PLACE`] of the least. `None` without distributions.
#[must_use]
pub fn optimum(windows: &[Turner], criterion: Criterion, delay: f64) -> Option<Optimum> {
    let product = |turner: &Turner| criterion.product(turner.pages(), turner.faults(), delay);
    let products: Vec<f64> = windows.iter().map(product).collect();
    let least = products.iter().copied().reduce(f64::min)?;
    let at = products.iter().position(|product| *product <= least + PLACE)?;
    let turner = &windows[at];
    Some(Optimum { criterion, window: turner.window(), pages: turner.pages(), product: products[at] })
}

/// Fits a program to the task's rows.
///
/// # Errors
/// [`FitError`] for a task that no fit can start from. For any other task a program is found; [`Fit::rows`]
/// shows its error.
pub fn fit(task: &FitTask) -> Result<Fit, FitError> {
    let count = check(task)?;
    let depths: Vec<usize> = task.start.iter().map(|(depth, _)| *depth).collect();
    let guess = unknowns(&task.start);
    let mut found = guess.clone();
    minimise(&mut found, ROUNDS_MAX, |unknowns| residuals(task, count, &depths, &guess, unknowns));
    program_of(task, count, &depths, &found).ok_or(FitError::Start)
}

/// The program with these unknowns, with its optima.
fn program_of(task: &FitTask, count: usize, depths: &[usize], unknowns: &[f64]) -> Option<Fit> {
    let program = Slrum::from_tails(&tails(depths, unknowns)).ok()?;
    let windows = Turner::sampled(&program, task.step, count)?;
    let rows = task.rows.iter().filter_map(|row| optimum(&windows, row.criterion, task.delay)).collect();
    Some(Fit { program, rows })
}

/// The task's family of programs, each given by its unknowns: see the module.
#[derive(Debug)]
pub(crate) struct Family {
    task: FitTask,
    depths: Vec<usize>,
    count: usize,
}

impl Family {
    /// # Errors
    /// The same as those of [`fit`].
    pub(crate) fn of(task: FitTask) -> Result<Self, FitError> {
        let count = check(&task)?;
        Ok(Self { depths: task.start.iter().map(|(depth, _)| *depth).collect(), count, task })
    }

    /// The unknowns of a program of the family.
    pub(crate) fn unknowns(&self, program: &Slrum) -> Vec<f64> {
        let tails: Vec<_> = self.depths.iter().map(|&depth| (depth, program.tail(depth))).collect();
        unknowns(&tails)
    }

    /// The program with these unknowns, if its optima are the task's: equal windows, z within
    /// [`PAGES_OFF_MAX`] and the product within [`PRODUCT_OFF_MAX`].
    pub(crate) fn program(&self, unknowns: &[f64]) -> Option<Fit> {
        let fit = program_of(&self.task, self.count, &self.depths, unknowns)?;
        let is_near = |(row, of): (&Optimum, &Optimum)| {
            row.window == of.window
                && (row.pages - of.pages).abs() < PAGES_OFF_MAX
                && (row.product - of.product).abs() < PRODUCT_OFF_MAX
        };
        (fit.rows.len() == self.task.rows.len() && fit.rows.iter().zip(&self.task.rows).all(is_near))
            .then_some(fit)
    }
}

/// The number of windows to try.
fn check(task: &FitTask) -> Result<usize, FitError> {
    let rising = task.start.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1);
    let sound = task.start.first().is_some_and(|(depth, tail)| *depth == 1 && *tail < 1.0)
        && task.start.iter().all(|(_, tail)| *tail > 0.0);
    if !rising || !sound {
        return Err(FitError::Start);
    }
    for row in &task.rows {
        let (step, range, window) = (task.step, task.range, row.window);
        if step.0 == 0 || window.0 == 0 || window > range || window.0 % step.0 != 0 {
            return Err(FitError::Window { window, step, range });
        }
    }
    Ok((task.range.0 / task.step.0) as usize)
}

/// The logarithm of the first tail, then the logarithms of the drops to each next one: any values give a
/// program.
fn unknowns(start: &[(usize, f64)]) -> Vec<f64> {
    let drops = start.windows(2).map(|pair| (pair[0].1 / pair[1].1).ln().max(DROP_MIN).ln());
    std::iter::once(start[0].1.ln()).chain(drops).collect()
}

fn tails(depths: &[usize], unknowns: &[f64]) -> Vec<f64> {
    let mut logarithm = unknowns[0].min(-f64::EPSILON);
    let mut tails = vec![logarithm.exp()];
    for (pair, drop) in depths.windows(2).zip(&unknowns[1..]) {
        let steps = pair[1] - pair[0];
        let drop = drop.exp();
        tails.extend((1..=steps).map(|step| (logarithm - drop * step as f64 / steps as f64).exp()));
        logarithm -= drop;
    }
    tails
}

fn residuals(task: &FitTask, count: usize, depths: &[usize], guess: &[f64], unknowns: &[f64]) -> Vec<f64> {
    let windows = Slrum::from_tails(&tails(depths, unknowns))
        .ok()
        .and_then(|program| Turner::sampled(&program, task.step, count))
        .unwrap_or_default();
    let curve: Vec<(f64, f64)> = windows.iter().map(|turner| (turner.pages(), turner.faults())).collect();
    let mut out = Vec::new();
    for row in &task.rows {
        row_residuals(row, (row.window.0 / task.step.0) as usize - 1, task.delay, &curve, &mut out);
    }
    out.extend(unknowns.iter().zip(guess).map(|(x, guess)| SMOOTHNESS * (x - guess)));
    out
}

fn row_residuals(row: &Optimum, at: usize, delay: f64, curve: &[(f64, f64)], out: &mut Vec<f64>) {
    let products: Vec<f64> = curve.iter().map(|(z, f)| row.criterion.product(*z, *f, delay)).collect();
    let Some(here) = products.get(at) else { return };
    let tolerance = match row.criterion {
        Criterion::ProcessorEfficiency => X_TOLERANCE,
        Criterion::Lifetime => Y_TOLERANCE,
    };
    out.push((curve[at].0 - row.pages) / PAGES_TOLERANCE);
    out.push((here - row.product) / tolerance);
    let lacks = |is: f64, least: f64| (least - is).max(0.0) / BEND;
    for (step, pair) in products.windows(2).enumerate() {
        out.push(if step < at { lacks(pair[0], pair[1]) } else { lacks(pair[1] + PLACE / 4.0, pair[0]) });
    }
    // The conditions of [`optimum`]: the window before is worse by more than [`PLACE`], and the least is not
    // better by [`PLACE`].
    let least = products.iter().copied().fold(f64::INFINITY, f64::min);
    if at > 0 {
        out.push(lacks(products[at - 1], least + 1.1 * PLACE));
    }
    out.push(lacks(least + 0.9 * PLACE, *here));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_reproduces_the_optimum_of_a_given_program() {
        // The optimum of a program with known tails serves as published; the fit starts elsewhere.
        let known = Slrum::from_tails(&[1e-2, 1e-3, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5]).unwrap();
        let windows = Turner::sampled(&known, Ticks(1000), 60).unwrap();
        let row = optimum(&windows, Criterion::ProcessorEfficiency, 8000.0).unwrap();
        let task = FitTask {
            start: vec![(1, 2e-2), (3, 1e-3), (5, 1e-4), (7, 2e-5)],
            delay: 8000.0,
            step: Ticks(1000),
            range: Ticks(60_000),
            rows: vec![row],
        };
        let fit = fit(&task).unwrap();
        assert_eq!(fit.rows[0].window, row.window);
        assert!((fit.rows[0].pages - row.pages).abs() < 0.05, "{fit:?} for {row:?}");
        assert!((fit.rows[0].product - row.product).abs() < 0.05, "{fit:?} for {row:?}");
    }

    #[test]
    fn tails_pass_through_their_depths() {
        let start = [(1, 0.5), (3, 0.125), (4, 0.1)];
        let tails = tails(&[1, 3, 4], &unknowns(&start));
        for (tail, expected) in tails.iter().zip([0.5, 0.25, 0.125, 0.1]) {
            assert!((tail - expected).abs() < 1e-12, "{tails:?}");
        }
    }

    #[test]
    fn tasks_that_cannot_be_fitted_are_refused() {
        let row = |window| Optimum {
            criterion: Criterion::Lifetime,
            window: Ticks(window),
            pages: 2.0,
            product: 3.0,
        };
        let task = |start: &[(usize, f64)], window| FitTask {
            start: start.to_vec(),
            delay: 1.0,
            step: Ticks(10),
            range: Ticks(100),
            rows: vec![row(window)],
        };
        assert_eq!(fit(&task(&[(2, 0.1)], 10)), Err(FitError::Start));
        assert_eq!(fit(&task(&[(1, 0.1), (3, 0.2)], 10)), Err(FitError::Start));
        assert_eq!(fit(&task(&[(1, 0.0)], 10)), Err(FitError::Start));
        for window in [0, 15, 110] {
            let said = fit(&task(&[(1, 0.1)], window));
            assert!(matches!(said, Err(FitError::Window { .. })), "{window}: {said:?}");
        }
    }
}
