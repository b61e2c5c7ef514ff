//! The order check: tests if the ratio of two arms (operations) depends on the order of their runs.
//!
//! A run changes the state for the next run: caches, free lists, the clock frequency. In random order, each
//! arm follows every other arm equally often. A regular order repeats one sequence, such as A B B A. If both
//! orders give the same ratio, the ratio belongs to the arms. If not, part of the ratio is an effect of the
//! order, and neither order is *the* right one, so the reader gets a warning. (For two loops of malloc and
//! free, one 1 % longer, random order gave +0.96 % and A B B A gave +0.77 %, both repeatable to 0.05 points.)
//!
//! The two estimates are independent. The confidence interval of the difference between them therefore has
//! half-widths of √(a² + b²), where a and b are half-widths of the estimates' own intervals.

use crate::{Interval, NEGLIGIBLE, percent};
use serde::Serialize;
use std::fmt;

/// A ratio measured in two orders.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OrderCheck {
    /// The ratio in random order.
    pub random: Interval,
    /// The ratio in the second order.
    pub second: Interval,
    /// The second over the first.
    pub difference: Interval,
}

impl OrderCheck {
    /// Compares a ratio with the same ratio in another order.
    #[must_use]
    pub fn of(random: Interval, second: Interval) -> Self {
        Self { random, second, difference: quotient(second, random) }
    }

    /// True if the ratio depends on the order: the difference is significant, and large enough to matter.
    #[must_use]
    pub fn depends(&self) -> bool {
        !self.difference.contains(1.0) && self.difference.estimate.ln().abs() > NEGLIGIBLE
    }
}

impl fmt::Display for OrderCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [random, second] = [self.random, self.second].map(|ratio| percent(ratio.estimate));
        let [difference, low, high] =
            [self.difference.estimate, self.difference.low, self.difference.high].map(percent);
        if self.depends() {
            write!(
                f,
                "the order of the arms changes the answer: {random} in random order, {second} forwards and backwards by turns; "
            )?;
            write!(
                f,
                "the second is {difference} [{low}, {high}] from the first. What one arm leaves behind changes the next: "
            )?;
            write!(f, "claim no more than both orders show")
        } else {
            write!(
                f,
                "in a second order {second} (random order {random}): the order makes no difference that was seen"
            )
        }
    }
}

/// The interval of the quotient of two independent ratios.
fn quotient(over: Interval, under: Interval) -> Interval {
    let estimate = over.estimate / under.estimate;
    // `hypot` alone would need version 2.35 of the C library; squares of such logarithms do not overflow.
    let distance = |one: f64, other: f64| (one * one + other * other).sqrt();
    let down = distance((over.estimate / over.low).ln(), (under.high / under.estimate).ln());
    let up = distance((over.high / over.estimate).ln(), (under.estimate / under.low).ln());
    Interval { estimate, low: estimate * (-down).exp(), high: estimate * up.exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(percent: f64, half: f64) -> Interval {
        Interval {
            estimate: (percent / 100.0).exp(),
            low: ((percent - half) / 100.0).exp(),
            high: ((percent + half) / 100.0).exp(),
        }
    }

    #[test]
    fn the_measured_example_depends_on_the_order() {
        let alloc = OrderCheck::of(around(0.96, 0.06), around(0.77, 0.10));
        assert!(alloc.depends());
        let text = alloc.to_string();
        assert!(text.contains("+0.965 % in random order, +0.773 % forwards"), "{text}");
        let cpu = OrderCheck::of(around(0.995, 0.004), around(0.996, 0.006));
        assert!(!cpu.depends() && cpu.to_string().contains("no difference"));
        let small = OrderCheck::of(around(0.99, 0.001), around(1.02, 0.001));
        assert!(!small.difference.contains(1.0) && !small.depends(), "sure, but too small to matter");
    }

    #[test]
    fn halves_add_as_squares_crosswise() {
        let over = Interval { estimate: 1.0, low: (-0.03f64).exp(), high: 0.3f64.exp() };
        let under = Interval { estimate: 2.0, low: 2.0 * (-0.4f64).exp(), high: 2.0 * 0.04f64.exp() };
        let got = quotient(over, under);
        assert!((got.estimate - 0.5).abs() < 1e-12);
        assert!(
            ((got.low / 0.5).ln() + 0.05).abs() < 1e-12 && ((got.high / 0.5).ln() - 0.5).abs() < 1e-12,
            "{got:?}"
        );
    }
}
