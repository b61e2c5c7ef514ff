//! The three arms of a duel, and the orders in which they run.
//!
//! Of two things compared, A runs twice a round: A against its double A' is the control, and must show nothing. In random
//! order each arm follows each other equally often, so that what one leaves behind (in caches, free lists, the clock's
//! frequency) is charged to all alike. The two regular orders are there to see whether an answer depends on that.

use crate::clock::Clock;
use crate::machine;
use vellum_measure::{Rng, Series};

/// The arms, by place in a round's times: A, its double, B.
pub const ARMS: [&str; 3] = ["A", "A'", "B"];
/// Which of the two things each arm is.
pub(crate) const THING: [usize; 3] = [0, 0, 1];

/// The six orders of three arms.
pub(crate) const ORDERS: [[u8; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
/// A A' B in that table, and B A' A.
const FORWARD: u8 = 0;
const BACKWARD: u8 = 5;

/// In which order the arms of a round run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ArmOrder {
    /// Drawn anew for each round.
    #[default]
    Random,
    /// Always A, A', B: only to see whether the answer depends on the order.
    Fixed,
    /// A, A', B and B, A', A by turns: likewise.
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

/// The head of one arm's series, `arm` a place in [`ARMS`]: what it is called, its clock, and on what it ran.
pub(crate) fn series(name: &str, arm: usize, order: ArmOrder, clock: &Clock) -> Series {
    Series {
        name: name.to_owned(),
        labels: vec![format!("arm={}", ARMS[arm]), format!("order={}", order.name())],
        clock: Some(clock.kind().name().to_owned()),
        machine: Some(machine::read()),
        ..Series::default()
    }
}

/// Orders, one a round, as places in [`ORDERS`].
#[derive(Debug)]
pub(crate) struct Orders {
    order: ArmOrder,
    rng: Rng,
    turn: u64,
}

impl Orders {
    pub(crate) fn new(order: ArmOrder, seed: u64) -> Orders {
        Orders { order, rng: Rng::new(seed), turn: 0 }
    }

    #[inline(always)]
    pub(crate) fn draw(&mut self) -> u8 {
        self.turn += 1;
        match self.order {
            ArmOrder::Random => self.rng.below(ORDERS.len() as u64) as u8,
            ArmOrder::Fixed => FORWARD,
            ArmOrder::Mirrored if self.turn % 2 == 1 => FORWARD,
            ArmOrder::Mirrored => BACKWARD,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_all_the_permutations() {
        let mut sorted = ORDERS;
        sorted.iter_mut().for_each(|order| order.sort_unstable());
        assert!(sorted.iter().all(|order| *order == [0, 1, 2]));
        let distinct: std::collections::HashSet<_> = ORDERS.into_iter().collect();
        assert_eq!(distinct.len(), 6);
        assert_eq!(ORDERS[usize::from(FORWARD)].map(usize::from).map(|arm| ARMS[arm]), ["A", "A'", "B"]);
        assert_eq!(ORDERS[usize::from(BACKWARD)].map(usize::from).map(|arm| ARMS[arm]), ["B", "A'", "A"]);
    }

    #[test]
    fn random_orders_come_equally_often_and_again_with_the_same_seed() {
        let draws = |seed| {
            let mut orders = Orders::new(ArmOrder::Random, seed);
            (0..6000).map(|_| orders.draw()).collect::<Vec<_>>()
        };
        let drawn = draws(9);
        assert_eq!(draws(9), drawn);
        for order in 0..6 {
            // Binomial with mean 1000 and deviation 28.9: five deviations either way (seed 9).
            let count = drawn.iter().filter(|one| **one == order).count();
            assert!(count.abs_diff(1000) < 145, "order {order} came {count} times");
        }
    }

    #[test]
    fn regular_orders_are_regular() {
        let mut mirrored = Orders::new(ArmOrder::Mirrored, 1);
        assert_eq!([0; 4].map(|_| mirrored.draw()), [FORWARD, BACKWARD, FORWARD, BACKWARD]);
        let mut fixed = Orders::new(ArmOrder::Fixed, 1);
        assert_eq!([0; 3].map(|_| fixed.draw()), [FORWARD; 3]);
    }
}
