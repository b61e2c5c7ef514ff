//! An estimate with its confidence interval.

use serde::{Deserialize, Serialize};

/// An estimate with the interval that holds the true value in [`CONFIDENCE`](crate::CONFIDENCE) of
/// repetitions.
///
/// `low <= high` always holds. The estimate normally lies between them; a percentile interval of few
/// observations need not be symmetric about it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// True if the interval contains `value`, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The interval of a number from its logarithm's interval.
    #[must_use]
    pub fn exp(self) -> Self {
        Self { estimate: self.estimate.exp(), low: self.low.exp(), high: self.high.exp() }
    }
}
