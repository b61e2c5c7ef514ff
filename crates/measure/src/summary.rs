//! A summary: a series in one line, with its name and five figures.
//!
//! Source: Bates' `BASE:summary:Sample:n:Time:us 1000 486 402 9053 499`, which his suite prints by default
//! instead of the observations.

use crate::{Series, Stat, Unit};

/// The five figures of a series, with what they are of.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// What was measured.
    pub name: String,
    /// Under which circumstances.
    pub labels: Vec<String>,
    /// What the values are.
    pub quantity: String,
    /// In what they are.
    pub unit: Unit,
    /// The figures.
    pub stat: Stat,
}

impl Summary {
    /// The figures of a series' [`walls`](Series::walls): an operation's, less the base. `None` if it has no
    /// values.
    #[must_use]
    pub fn of(series: &Series) -> Option<Self> {
        Some(Self {
            name: series.name.clone(),
            labels: series.labels.clone(),
            quantity: series.quantity.clone(),
            unit: series.unit.clone(),
            stat: series.stat()?,
        })
    }
}
