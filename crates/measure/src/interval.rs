//! An estimate with its confidence interval.

use serde::{Deserialize, Serialize};

/// An estimate with the interval that holds the true value in [`CONFIDENCE`](crate::CONFIDENCE) of
/// repetitions.
///
/// `low <= high` always holds. The estimate normally lies between them; a percentile interval of few
/// observations need not be symmetric about it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The one figure.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether `value` is inside, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The same on the other side of a logarithm: of a logarithm's interval that of the number.
    #[must_use]
    pub fn exp(self) -> Self {
        Self { estimate: self.estimate.exp(), low: self.low.exp(), high: self.high.exp() }
    }
}
