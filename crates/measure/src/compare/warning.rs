//! Warnings to show beside the figures of a comparison.

use super::TELLING_FROM;
use super::ratios::with_interval as text;
use crate::{Interval, OrderCheck};
use std::fmt;

/// A warning to show beside the figures of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Warning {
    /// Too few rounds for an interval.
    Few(usize),
    /// The control's interval excludes 1, although its arms are the same.
    Control(Interval),
    /// The intervals of the two estimators do not overlap.
    Shape {
        /// The headline's ratio.
        headline: Interval,
        /// The check's ratio.
        check: Interval,
    },
    /// The ratio depends on the order of the arms.
    Order(OrderCheck),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Few(rounds) => write!(
                f,
                "{rounds} rounds: an interval that holds 95 % needs {TELLING_FROM}; the one printed is about their range"
            ),
            Self::Control(control) => write!(
                f,
                "the control, the same thing again, differs by {}: something else than the arms is measured, so trust \
                 no difference of that size",
                text(control)
            ),
            Self::Shape { headline, check } => write!(
                f,
                "two estimates of the same ratio disagree, {} and {}: the arms differ in shape, not in pace only; look \
                 at their histograms",
                text(headline),
                text(check)
            ),
            Self::Order(order) => order.fmt(f),
        }
    }
}
