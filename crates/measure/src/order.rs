//! In which order the arms of a comparison run.
//!
//! A fixed order (A, B, A, B) gives each arm the same predecessor every time: what A leaves in the caches, in the
//! clock frequency, in the kernel's free lists, is charged to B for ever. A random order a round breaks that up,
//! and because every arm still comes exactly once a round, the arms of one round can be paired.

use crate::Rng;

/// Orders in which arms are run.
#[derive(Debug, Clone, Copy)]
pub struct Order;

impl Order {
    /// `rounds` random permutations of `0..arms`, one after the other: item `r * arms + i` is the arm that runs at
    /// place `i` of round `r`. The same seed gives the same order.
    #[must_use]
    pub fn interleave(arms: usize, rounds: usize, seed: u64) -> Vec<usize> {
        let mut rng = Rng::new(seed);
        let mut order = Vec::with_capacity(arms * rounds);
        for _ in 0..rounds {
            let start = order.len();
            order.extend(0..arms);
            rng.shuffle(&mut order[start..]);
        }
        order
    }

    /// `rounds` rounds of `0..arms` in rising order, then falling, and so on: A B B A for two arms.
    ///
    /// What drifts evenly falls on all arms alike, but each has the same neighbours for ever: a second order that shows
    /// whether an answer depends on the order, and no substitute for a random one.
    #[must_use]
    pub fn mirrored(arms: usize, rounds: usize) -> Vec<usize> {
        let round = |round: usize| {
            (0..arms).map(move |arm| if round.is_multiple_of(2) { arm } else { arms - 1 - arm })
        };
        (0..rounds).flat_map(round).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_round_holds_every_arm_once(arms in 0usize..12, rounds in 0usize..12, seed: u64) {
            let order = Order::interleave(arms, rounds, seed);
            prop_assert_eq!(order.len(), arms * rounds);
            for round in order.chunks(arms.max(1)) {
                let mut sorted = round.to_vec();
                sorted.sort_unstable();
                prop_assert!(sorted.iter().copied().eq(0..arms));
            }
            prop_assert_eq!(order, Order::interleave(arms, rounds, seed));
        }
    }

    #[test]
    fn mirrored_rounds_are_each_others_image() {
        assert_eq!(Order::mirrored(3, 3), [0, 1, 2, 2, 1, 0, 0, 1, 2]);
        assert_eq!(Order::mirrored(2, 2), [0, 1, 1, 0]);
        assert!(Order::mirrored(0, 5).is_empty());
    }

    #[test]
    fn every_permutation_comes_equally_often() {
        let rounds = 6000;
        let mut seen = std::collections::HashMap::new();
        for round in Order::interleave(3, rounds, 42).chunks(3) {
            *seen.entry(round.to_vec()).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        // Each count is binomial with mean 1000 and deviation 28.9: five deviations either way (seed 42).
        assert!(seen.values().all(|n| n.abs_diff(1000) < 145), "{seen:?}");
    }
}
