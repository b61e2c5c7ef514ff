//! Ranks: replaces each value by its position in the sorted values, for tests that resist outliers.
//!
//! Ranks keep the order of the values and drop the distances. A timing disturbed by a millisecond and one
//! disturbed by a second then have about the same weight. Under the null hypothesis, the distribution of the
//! ranks does not depend on that of the values. Equal values, which are common with a coarse clock, share the
//! mean of their ranks.

/// The rank of each value as a share: (rank − ½) / n, between 0 and 1, with mean ½; `None` if a value is not
/// a number.
pub(crate) fn rank_shares(values: &[f64]) -> Option<Vec<f64>> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut shares = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let share = (first as f64 + equal.len() as f64 / 2.0) / values.len() as f64;
        equal.iter().for_each(|place| shares[*place] = share);
        first += equal.len();
    }
    Some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(rank_shares(&[7.0, 1.0, 7.0, 1e9]).unwrap(), [0.5, 0.125, 0.5, 0.875]);
        assert_eq!(rank_shares(&[0.0, -0.0]).unwrap(), [0.5, 0.5]);
        assert!(rank_shares(&[]).unwrap().is_empty());
        assert_eq!(rank_shares(&[1.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn the_mean_is_a_half_and_the_order_stays(values in proptest::collection::vec(-5i32..5, 1..50)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let shares = rank_shares(&values).unwrap();
            prop_assert!((shares.iter().sum::<f64>() / values.len() as f64 - 0.5).abs() < 1e-12);
            for (a, share_a) in values.iter().zip(&shares) {
                for (b, share_b) in values.iter().zip(&shares) {
                    prop_assert_eq!(a.partial_cmp(b), share_a.partial_cmp(share_b));
                }
            }
        }
    }
}
