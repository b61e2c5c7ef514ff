//! A summary of a series in one line: its name and its count, mean, minimum, maximum and standard deviation.
//!
//! Source: `BASE:summary:Sample:n:Time:us 1000 486 402 9053 499` in Bates 1999, whose suite prints such
//! lines by default instead of the observations.

use crate::{Series, Stat, Unit};

/// The five figures of a series, with its name, labels, quantity and unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The name of the series.
    pub name: String,
    /// The circumstances of the measurement.
    pub labels: Vec<String>,
    /// The quantity of the values.
    pub quantity: String,
    /// Their unit.
    pub unit: Unit,
    /// The figures.
    pub stat: Stat,
}

impl Summary {
    /// The figures of a series' [`walls`](Series::walls): per operation, less the base. `None` without
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
