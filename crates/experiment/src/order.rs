//! Draws the order of the arms within each round.
//!
//! In random order each arm follows each other arm equally often. The state that an arm leaves behind
//! (caches, free lists, the clock's frequency) therefore affects all alike. The two regular orders serve to
//! check whether a result depends on the order.

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
}

/// The orders of all rounds, one after the other. A seed always gives the same orders.
#[derive(Debug)]
pub struct Orders {
    order: ArmOrder,
    rng: Rng,
    round: usize,
    arms: Vec<usize>,
}

impl Orders {
    /// The orders of `arms` arms.
    #[must_use]
    pub fn new(order: ArmOrder, arms: usize, seed: u64) -> Orders {
        Orders { order, rng: Rng::new(seed), round: 0, arms: vec![0; arms] }
    }

    /// The arms in the order of the next round.
    #[inline]
    pub fn draw(&mut self) -> &[usize] {
        self.arms.iter_mut().enumerate().for_each(|(place, arm)| *arm = place);
        match self.order {
            ArmOrder::Random => self.rng.shuffle(&mut self.arms),
            ArmOrder::Mirrored if self.round % 2 == 1 => self.arms.reverse(),
            ArmOrder::Fixed | ArmOrder::Mirrored => {}
        }
        self.round += 1;
        &self.arms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn random_orders_are_uniform_and_reproducible() {
        let draws = |seed| {
            let mut orders = Orders::new(ArmOrder::Random, 3, seed);
            (0..6000).map(|_| orders.draw().to_vec()).collect::<Vec<_>>()
        };
        let drawn = draws(9);
        assert_eq!(draws(9), drawn);
        let mut counts = HashMap::new();
        for order in drawn {
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
        let draw = |order, arms| {
            let mut orders = Orders::new(order, arms, 1);
            [0; 3].map(|_| orders.draw().to_vec())
        };
        assert_eq!(draw(ArmOrder::Mirrored, 3), [vec![0, 1, 2], vec![2, 1, 0], vec![0, 1, 2]]);
        assert_eq!(draw(ArmOrder::Fixed, 2), [[0, 1]; 3].map(Vec::from));
        assert!(draw(ArmOrder::Random, 0).concat().is_empty());
    }
}
