//! Warnings to show beside the figures of a comparison.

use super::TELLING_FROM;
use super::ratios::with_interval as text;
use crate::{Interval, OrderCheck};
use std::fmt;

/// What a reader of a comparison must know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Warning {
    /// Too few rounds for an interval.
    Few(usize),
    /// The control shows a difference where there is none.
    Control(Interval),
    /// The two estimators do not agree.
    Shape {
        /// The headline's ratio.
        headline: Interval,
        /// The check's.
        check: Interval,
    },
    /// The answer depends on the order.
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
