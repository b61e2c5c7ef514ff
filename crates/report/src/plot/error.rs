//! Why there is no plot.

use super::SERIES_MAX;

/// Why there is no plot.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// No series was given.
    #[error("plot: there is no series; name one that the input holds")]
    NoSeries,
    /// Too many series for one picture.
    #[error("plot: {0} series do not fit into one picture; choose at most {SERIES_MAX}")]
    TooMany(usize),
    /// Series that have no axis in common.
    #[error("plot: {name} is {what}, {first} is {first_what}: they have no axis in common; plot them apart")]
    Mixed {
        /// The series that differs.
        name: String,
        /// Its quantity and unit.
        what: String,
        /// The first series.
        first: String,
        /// The first series' quantity and unit.
        first_what: String,
    },
    /// Pairs need two series.
    #[error("plot: pairs need two series or more, here is only {0}; add the one to compare it with")]
    NoPartner(String),
    /// Pairs need partners.
    #[error(
        "plot: {name} has {count} observations, {first} {first_count}: those without a partner cannot be paired; cut both \
         to the same rounds"
    )]
    Unpaired {
        /// The series that differs.
        name: String,
        /// Its length.
        count: usize,
        /// The first series.
        first: String,
        /// The first series' length.
        first_count: usize,
    },
    /// Causes that are not one an observation.
    #[error("plot: {name} has {values} observations but causes for {causes}; give one, or none, for each")]
    Causes {
        /// The series.
        name: String,
        /// How many values.
        values: usize,
        /// How many causes.
        causes: usize,
    },
}
