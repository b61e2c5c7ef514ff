//! Computes quantiles and the median.
//!
//! Between two neighbouring observations the quantile is interpolated linearly (Hyndman and Fan's type 7).
//! The 0.5 quantile is then the usual median: the middle value, or the mean of the two middle values. The
//! rule is symmetric: the quantile `p` of the negated data is minus the quantile `1 - p` of the data.

/// The normal distribution's standard deviation over its median absolute deviation.
pub(crate) const DEVIATION_OVER_MAD: f64 = 1.482_602_218_505_602;

/// The median of the values; `None` if there are none or one is not a number.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which the share `p` (0 to 1) of the values lies; `None` if there are no values, one is not
/// a number, or `p` is outside 0 to 1.
#[must_use]
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&p) || values.is_empty() || values.iter().any(|v| v.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(quantile_of_sorted(&sorted, p))
}

/// The quantile of values that are sorted, not empty, and without NaN.
pub(crate) fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let weight = place - below as f64;
    // Equal neighbours are returned unchanged: between two infinities the interpolation would be NaN.
    if weight == 0.0 || sorted[below] == sorted[above] {
        return sorted[below];
    }
    sorted[below] + (sorted[above] - sorted[below]) * weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_input_has_no_quantile() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
    }

    #[test]
    fn quantiles_of_one_to_n() {
        // The quantile p of the values 0..=n is exactly p * n.
        let values: Vec<f64> = (0..=40).rev().map(f64::from).collect();
        for (p, want) in [(0.0, 0.0), (0.025, 1.0), (0.1, 4.0), (0.5, 20.0), (0.9125, 36.5), (1.0, 40.0)] {
            let got = quantile(&values, p).unwrap();
            assert!((got - want).abs() < 1e-9, "quantile {p}: {got}, expected {want}");
        }
    }

    #[test]
    fn infinities_do_not_make_nan() {
        assert_eq!(quantile(&[f64::INFINITY; 4], 0.3), Some(f64::INFINITY));
    }

    proptest! {
        #[test]
        fn mirrored_data_mirror_the_quantile(values in proptest::collection::vec(-1e3f64..1e3, 1..60), p in 0.0f64..=1.0) {
            let negated: Vec<f64> = values.iter().map(|v| -v).collect();
            let (a, b) = (quantile(&values, p).unwrap(), quantile(&negated, 1.0 - p).unwrap());
            prop_assert!((a + b).abs() < 1e-6, "{a} and {b}");
        }
    }
}
