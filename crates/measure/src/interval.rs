//! An estimate and how far it could be off.

/// An estimate with the interval that holds the true value in [`CONFIDENCE`](crate::CONFIDENCE) of repetitions.
///
/// `low <= high` always holds. The estimate normally lies between them; a percentile interval of few observations
/// need not be symmetric about it.
#[derive(Debug, Clone, Copy, PartialEq)]
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

    /// The width as a share of the estimate: 0.04 reads "four percent wide".
    #[must_use]
    pub fn relative_width(&self) -> f64 {
        (self.high - self.low) / self.estimate.abs()
    }
}
