//! Draws the order of the arms within each round.
//!
//! In random order each arm follows every other arm equally often. The state that an arm leaves behind
//! (caches, free lists, the clock's frequency) therefore affects all arms alike. The two regular orders
//! (fixed, and alternately reversed) serve to check whether a result depends on the order.

use vellum_measure::Rng;

/// The order of the arms in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ArmOrder {
    /// Random, drawn for each round.
    #[default]
    Random,
    /// Always A, A', B, to check if the ratio depends on the order.
    Fixed,
    /// Alternately A, A', B and B, A', A, for the same check.
    Mirrored,
}

impl ArmOrder {
    /// The stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ArmOrder::Random => "random",
            ArmOrder::Fixed => "fixed",
            ArmOrder::Mirrored => "mirrored",
        }
    }

    /// Puts the arms into the order of this round, counted from 0. The same state of `rng` gives the same
    /// order.
    #[inline]
    pub(crate) fn draw(self, round: usize, rng: &mut Rng, arms: &mut [usize]) {
        arms.iter_mut().enumerate().for_each(|(place, arm)| *arm = place);
        match self {
            ArmOrder::Random => rng.shuffle(arms),
            ArmOrder::Mirrored if round % 2 == 1 => arms.reverse(),
            ArmOrder::Fixed | ArmOrder::Mirrored => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The orders of the first rounds.
    fn drawn(order: ArmOrder, arms: usize, seed: u64, rounds: usize) -> Vec<Vec<usize>> {
        let (mut rng, mut arms) = (Rng::new(seed), vec![0; arms]);
        let mut draw = |round| {
            order.draw(round, &mut rng, &mut arms);
            arms.clone()
        };
        (0..rounds).map(&mut draw).collect()
    }

    #[test]
    fn random_orders_are_uniform_and_reproducible() {
        let orders = drawn(ArmOrder::Random, 3, 9, 6000);
        assert_eq!(drawn(ArmOrder::Random, 3, 9, 6000), orders);
        let mut counts = HashMap::new();
        for order in orders {
            *counts.entry(order).or_insert(0_usize) += 1;
        }
        assert_eq!(counts.len(), 6, "all permutations of three: {counts:?}");
        for (order, count) in counts {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            // Binomial with mean 1000 and deviation 28.9: five deviations either way (seed 9).
            assert!(count.abs_diff(1000) < 145, "order {order:?} came {count} times");
        }
    }

    #[test]
    fn fixed_and_mirrored_orders_repeat() {
        let draw = |order, arms| drawn(order, arms, 1, 3);
        assert_eq!(draw(ArmOrder::Mirrored, 3), [vec![0, 1, 2], vec![2, 1, 0], vec![0, 1, 2]]);
        assert_eq!(draw(ArmOrder::Fixed, 2), [[0, 1]; 3].map(Vec::from));
        assert!(draw(ArmOrder::Random, 0).concat().is_empty());
    }
}
