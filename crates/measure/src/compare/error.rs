//! Errors of a comparison: the reasons why arms cannot be compared, checked before any computation.

use super::{Arms, Options, TELLING_FROM};
use thiserror::Error;

/// Errors of a comparison.
#[derive(Debug, Clone, PartialEq, Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum CompareError {
    /// The arms have different numbers of rounds.
    #[error(
        "comparing: arm a has {a} rounds, its control {control}, arm b {b}; give each arm one value a round"
    )]
    Lengths { a: usize, control: usize, b: usize },
    /// There are no rounds.
    #[error("comparing: there are no rounds; measure at least one, better {TELLING_FROM} or more")]
    NoRounds,
    /// A time is zero or less and has no logarithm.
    #[error(
        "comparing: round {round} of arm {arm} is {value}; a ratio needs positive times: time more operations at once"
    )]
    NotPositive { arm: &'static str, round: usize, value: f64 },
    /// An option is out of range.
    #[error("comparing: {what} is {value}; {cure}")]
    Option { what: &'static str, value: f64, cure: &'static str },
}

pub(super) fn check_options(options: &Options) -> Result<(), CompareError> {
    let wrong = |what, value, cure| Err(CompareError::Option { what, value, cure });
    if options.resamples == 0 {
        return wrong("the number of resamples", 0.0, "a thousand is plenty");
    }
    if !(options.step >= 0.0 && options.step.is_finite()) {
        return wrong("the clock's step", options.step, "give a time, or 0 if it is unknown");
    }
    if !(0.0..=1.0).contains(&options.low_share) {
        return wrong("the share of the absolute figure", options.low_share, "give a share from 0 to 1");
    }
    Ok(())
}

pub(super) fn check_arms(arms: Arms<'_>) -> Result<(), CompareError> {
    let [a, control, b] = [arms.a, arms.control, arms.b].map(<[f64]>::len);
    if a != control || a != b {
        return Err(CompareError::Lengths { a, control, b });
    }
    if a == 0 {
        return Err(CompareError::NoRounds);
    }
    for (arm, values) in [("a", arms.a), ("control", arms.control), ("b", arms.b)] {
        if let Some(at) = values.iter().position(|value| !(value.is_finite() && *value > 0.0)) {
            return Err(CompareError::NotPositive { arm, round: at + 1, value: values[at] });
        }
    }
    Ok(())
}
