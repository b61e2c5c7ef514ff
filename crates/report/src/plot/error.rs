//! Errors of plots: the reasons why a plot cannot be drawn.

use super::SERIES_MAX;

/// Errors of a plot.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum PlotError {
    /// No series was given.
    #[error("plot: there is no series; name one that the input holds")]
    NoSeries,
    /// Too many series for one picture.
    #[error("plot: {0} series do not fit into one picture; choose at most {SERIES_MAX}")]
    TooMany(usize),
    /// The series have no common axis.
    #[error("plot: {name} is {what}, {first} is {first_what}: they have no axis in common; plot them apart")]
    Mixed {
        name: String,
        what: String,
        first: String,
        /// The first series' quantity and unit.
        first_what: String,
    },
    /// Pairs need two series.
    #[error("plot: pairs need two series or more, here is only {0}; add the one to compare it with")]
    NoPartner(String),
    /// Some observations have no partner for a pair.
    #[error(
        "plot: {name} has {count} observations, {first} {first_count}: those without a partner cannot be paired; cut both \
         to the same rounds"
    )]
    Unpaired { name: String, count: usize, first: String, first_count: usize },
    /// There is not one cause for each observation.
    #[error("plot: {name} has {values} observations but causes for {causes}; give one, or none, for each")]
    Causes { name: String, values: usize, causes: usize },
}
