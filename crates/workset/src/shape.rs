//! Removes noise from working-set curves by their shape: z (mean size) is concave, so its slopes fall.
//!
//! z(T) is the mean of min(interval, T) over all inter-reference intervals; each term is concave. Noise in
//! the values measured at several windows breaks this: slopes between such points jump or turn negative. The
//! nearest falling slopes, each segment weighted by its length, are those of the least concave curve above
//! the points:
//!
//! ```text
//!  z ┤        ●╌╌╌╌╌●          ● measured      slopes that rise are joined
//!    ┤    ●╌╌╌  ●              ╌ fitted        into one: a straight line
//!    ┤  ●                                      from end to end
//!    └──────────────────▶ T
//! ```
//!
//! These slopes are found by pooling adjacent violators (Ayer and others 1955), in one pass.

/// The falling sequence nearest to `values` in weighted squares; `weights` are positive, one for each value.
#[must_use]
pub fn falling(values: &[f64], weights: &[f64]) -> Vec<f64> {
    // Blocks of equal value: the mean, its weight, and the number of values.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(values.len());
    for (value, weight) in values.iter().zip(weights) {
        let mut block = (*value, *weight, 1);
        while let Some(last) = blocks.pop_if(|last| last.0 < block.0) {
            let weight = last.1 + block.1;
            block = ((last.0 * last.1 + block.0 * block.1) / weight, weight, last.2 + block.2);
        }
        blocks.push(block);
    }
    blocks.iter().flat_map(|(mean, _, count)| std::iter::repeat_n(*mean, *count)).collect()
}

/// The slopes of the segments from the origin through the points, adjusted to fall and never be negative.
///
/// `windows` rise from above 0. The sum of the slopes, segment by segment from the origin, is the fitted
/// curve.
#[must_use]
pub fn concave_slopes(windows: &[f64], pages: &[f64]) -> Vec<f64> {
    let widths: Vec<f64> = steps(windows).collect();
    let slopes: Vec<f64> = steps(pages).zip(&widths).map(|(rise, width)| rise / width).collect();
    let mut fitted = falling(&slopes, &widths);
    fitted.iter_mut().for_each(|slope| *slope = slope.max(0.0));
    fitted
}

/// The difference from 0 to the first value, and from each value to the next.
pub(crate) fn steps(values: &[f64]) -> impl Iterator<Item = f64> + '_ {
    std::iter::once(0.0).chain(values.iter().copied()).zip(values).map(|(before, value)| value - before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_falling_sequence_is_nearer(
            data in prop::collection::vec((0.0f64..10.0, 0.1f64..3.0), 1..12),
            other in prop::collection::vec(0.0f64..10.0, 12),
        ) {
            let (values, weights): (Vec<f64>, Vec<f64>) = data.into_iter().unzip();
            let fitted = falling(&values, &weights);
            prop_assert!(fitted.windows(2).all(|pair| pair[0] >= pair[1] - 1e-12));
            let mut other = other[..values.len()].to_vec();
            other.sort_by(|a, b| b.total_cmp(a));
            let distance = |to: &[f64]| -> f64 {
                values.iter().zip(to).zip(&weights).map(|((v, t), w)| w * (v - t).powi(2)).sum()
            };
            prop_assert!(distance(&fitted) <= distance(&other) + 1e-9);
        }

        #[test]
        fn concave_points_are_unchanged(drops in prop::collection::vec(0.01f64..1.0, 1..20)) {
            let windows: Vec<f64> = (1..=drops.len()).map(|m| m as f64 * 2.0).collect();
            let mut slope: f64 = drops.iter().sum();
            let mut z = 0.0;
            let pages: Vec<f64> = drops.iter().map(|drop| { z += slope * 2.0; slope -= drop; z }).collect();
            let slopes = concave_slopes(&windows, &pages);
            let fitted: f64 = slopes.iter().map(|s| s * 2.0).sum();
            prop_assert!((fitted - z).abs() < 1e-9);
            prop_assert!(slopes.windows(2).all(|pair| pair[0] >= pair[1] - 1e-12));
        }
    }
}
