//! Least squares for a handful of unknowns and nonlinear residuals, by the method of Levenberg and Marquardt.
//!
//! Each step approximates the sum of squares by a paraboloid from the residuals' first derivatives, and
//! goes to its lowest point. If the approximation was poor, damping shortens the next step. Derivatives are
//! differences; the functions fitted here are cheap.

use std::ops::ControlFlow;

/// The change of an unknown to find a derivative; unknowns are of order 1.
const PROBE: f64 = 1e-5;
/// Damping of the first step, and its factors after a good and a bad step.
const DAMPING: f64 = 1.0;
const BETTER: f64 = 0.3;
const WORSE: f64 = 4.0;
const DAMPING_MIN: f64 = 1e-12;
/// Consecutive bad steps after which the search ends.
const TRIES_MAX: u32 = 12;
/// The largest change of an unknown in one step: the derivatives are not valid beyond.
const STEP_MAX: f64 = 1.0;
/// The last round is the first that reduces the sum by less than this fraction.
const GAIN_MIN: f64 = 1e-7;

/// Changes `unknowns` to a nearby minimum of the sum of squared `residuals`; returns that sum.
pub(crate) fn minimise(
    unknowns: &mut [f64],
    rounds_max: usize,
    residuals: impl Fn(&[f64]) -> Vec<f64>,
) -> f64 {
    let mut state = State { at: residuals(unknowns), damping: DAMPING };
    for _ in 0..rounds_max {
        if round(unknowns, &mut state, &residuals).is_break() {
            break;
        }
    }
    squares(&state.at)
}

struct State {
    at: Vec<f64>,
    damping: f64,
}

fn round(
    unknowns: &mut [f64],
    state: &mut State,
    residuals: &impl Fn(&[f64]) -> Vec<f64>,
) -> ControlFlow<()> {
    let slopes: Vec<Vec<f64>> = (0..unknowns.len())
        .map(|i| {
            let mut moved = unknowns.to_vec();
            moved[i] += PROBE;
            residuals(&moved).iter().zip(&state.at).map(|(a, b)| (a - b) / PROBE).collect()
        })
        .collect();
    let downhill: Vec<f64> = slopes.iter().map(|slope| -dot(slope, &state.at)).collect();
    let before = squares(&state.at);
    for _ in 0..TRIES_MAX {
        let mut matrix: Vec<Vec<f64>> =
            slopes.iter().map(|a| slopes.iter().map(|b| dot(a, b)).collect()).collect();
        for (i, row) in matrix.iter_mut().enumerate() {
            // The second part keeps unknowns constant that no residual depends on.
            row[i] += state.damping * (row[i] + 1e-3);
        }
        if let Some(step) = solve(matrix, downhill.clone()) {
            let moved: Vec<f64> =
                unknowns.iter().zip(step).map(|(x, step)| x + step.clamp(-STEP_MAX, STEP_MAX)).collect();
            let at = residuals(&moved);
            let after = squares(&at);
            if after < before {
                unknowns.copy_from_slice(&moved);
                *state = State { at, damping: (state.damping * BETTER).max(DAMPING_MIN) };
                let gained = before - after > before * GAIN_MIN;
                return if gained { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
            }
        }
        state.damping *= WORSE;
    }
    ControlFlow::Break(())
}

/// Gaussian elimination with the largest pivot; `None` for a singular matrix.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|a, b| matrix[*a][i].abs().total_cmp(&matrix[*b][i].abs()))?;
        matrix.swap(i, pivot);
        right.swap(i, pivot);
        if matrix[i][i] == 0.0 || !matrix[i][i].is_finite() {
            return None;
        }
        for j in i + 1..n {
            let factor = matrix[j][i] / matrix[i][i];
            let (above, below) = matrix.split_at_mut(j);
            for (value, pivot) in below[0][i..].iter_mut().zip(&above[i][i..]) {
                *value -= factor * pivot;
            }
            right[j] -= factor * right[i];
        }
    }
    for i in (0..n).rev() {
        let known = dot(&matrix[i][i + 1..], &right[i + 1..]);
        right[i] = (right[i] - known) / matrix[i][i];
    }
    Some(right)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn squares(values: &[f64]) -> f64 {
    dot(values, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curved_valley_is_followed_to_its_minimum() {
        // Rosenbrock's function, with its minimum at (1, 1).
        let mut at = [-1.2, 1.0];
        let sum = minimise(&mut at, 200, |x| vec![10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]]);
        assert!(sum < 1e-9 && (at[0] - 1.0).abs() < 1e-4, "{sum} at {at:?}");
    }

    #[test]
    fn an_unknown_without_effect_stays_constant() {
        let mut at = [5.0, 3.0];
        minimise(&mut at, 50, |x| vec![x[0] - 2.0]);
        assert!((at[0] - 2.0).abs() < 1e-6 && at[1] == 3.0, "{at:?}");
    }

    #[test]
    fn three_equations_match_a_hand_calculation() {
        let matrix = vec![vec![0.0, 2.0, 1.0], vec![1.0, 0.0, 0.0], vec![3.0, 0.0, 1.0]];
        assert_eq!(solve(matrix, vec![7.0, 1.0, 6.0]), Some(vec![1.0, 2.0, 3.0]));
        assert_eq!(solve(vec![vec![0.0]], vec![1.0]), None);
    }
}
