//! The gate: fails a CI build if a program became slower than allowed.
//!
//! Builds that fail because the machine was busy teach people to ignore failures. The gate therefore fails
//! only if the *whole* confidence interval of the ratio lies above the allowed ratio. There are three
//! outcomes, where `[--x--]` is the interval with its estimate:
//!
//! ```text
//!        1        allowed
//!        │   [--x--] │            passed: the ratio is at most the allowed one
//!        │      [---x┼-----]      not shown: may or may not exceed it; needs more rounds
//!        │           │ [--x--]    failed
//! ```
//!
//! The control (a second run of the first program `a`) can raise the allowed ratio. If the interval of
//! control/a excludes 1, equal programs seem to differ. The allowed ratio is then multiplied by control/a,
//! or by its reciprocal if that is above 1. If the ratio's interval overlaps the control's, the verdict is no
//! difference ([`Direction`]).
//!
//! Invariants: a gate fails only if
//! - the interval contains no allowed ratio,
//! - the verdict is a difference, and
//! - there are at least [`TELLING_FROM`] rounds.

use crate::{Direction, Interval, TELLING_FROM, percent, rounds_needed};
use serde::Serialize;
use std::fmt;

/// More rounds than this are not suggested: a ratio so close to the limit cannot be decided.
const ROUNDS_ADVISED_MAX: usize = 10_000_000;

/// The result of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The ratio stays within the allowed one.
    Passed,
    /// Neither is shown.
    NotShown,
    /// The ratio exceeds the allowed one.
    Failed,
}

/// A ratio compared with the allowed one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gate {
    /// The allowed ratio: 1.02 for two per cent.
    pub allowed: f64,
    /// The factor that the control adds to the allowed ratio: 1 if the control shows no difference.
    pub skew: f64,
    /// The measured ratio.
    pub ratio: Interval,
    /// The number of rounds from which the ratio was computed.
    pub rounds: usize,
    /// The result.
    pub outcome: Outcome,
}

impl Gate {
    /// Compares `ratio` with `allowed` (1.02: two per cent more). `control` is the control's ratio; `rounds`
    /// is the number of rounds.
    #[must_use]
    pub fn of(ratio: Interval, control: Interval, rounds: usize, allowed: f64) -> Self {
        let skew = if control.contains(1.0) { 1.0 } else { control.estimate.ln().abs().exp() };
        let limit = allowed * skew;
        let few = rounds < TELLING_FROM;
        let stands_out = Direction::of(ratio, control) == Direction::More;
        let outcome = match ratio {
            _ if few => Outcome::NotShown,
            _ if ratio.low > limit && stands_out => Outcome::Failed,
            _ if ratio.high <= limit => Outcome::Passed,
            _ => Outcome::NotShown,
        };
        Self { allowed, skew, ratio, rounds, outcome }
    }

    /// True if the build should fail.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.outcome == Outcome::Failed
    }

    /// If the outcome is [`NotShown`](Outcome::NotShown): about how many rounds would decide, if the ratio
    /// stays the same.
    #[must_use]
    pub fn rounds_advised(&self) -> Option<usize> {
        if self.outcome != Outcome::NotShown {
            return None;
        }
        if self.rounds < TELLING_FROM {
            return Some(TELLING_FROM);
        }
        let distance = (self.ratio.estimate / (self.allowed * self.skew)).ln().abs();
        rounds_needed(self.rounds, &self.ratio, distance).filter(|rounds| *rounds <= ROUNDS_ADVISED_MAX)
    }
}

/// One or two sentences for people.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [estimate, low, high] = [self.ratio.estimate, self.ratio.low, self.ratio.high].map(percent);
        let allowed = percent(self.allowed);
        match self.outcome {
            Outcome::Failed => write!(f, "failed: {estimate}, at least {low}; {allowed} is allowed")?,
            Outcome::Passed => write!(f, "passed: {estimate}, at most {high}; {allowed} is allowed")?,
            Outcome::NotShown => {
                write!(f, "not shown: {estimate}, anything from {low} to {high}; {allowed} is allowed, ")?;
                write!(f, "and the interval contains it: inconclusive. This is no failure")?;
                match self.rounds_advised() {
                    Some(TELLING_FROM) => write!(f, "; at least {TELLING_FROM} rounds are needed")?,
                    Some(rounds) => write!(f, "; about {rounds} rounds are needed")?,
                    None => write!(f, "; the difference is too small to resolve")?,
                }
            }
        }
        if self.skew > 1.0 {
            write!(f, " (and {} on top: by that much the control differs from itself)", percent(self.skew))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(estimate: f64, low: f64, high: f64) -> Interval {
        Interval { estimate, low, high }
    }

    /// A control without a difference.
    const SAME: Interval = Interval { estimate: 1.0, low: 1.0, high: 1.0 };

    fn outcome(low: f64, high: f64) -> Outcome {
        Gate::of(interval(f64::midpoint(low, high), low, high), SAME, 100, 1.02).outcome
    }

    #[test]
    fn only_a_whole_interval_fails() {
        assert_eq!(outcome(1.021, 1.05), Outcome::Failed);
        assert_eq!(outcome(1.019, 1.05), Outcome::NotShown);
        assert_eq!(outcome(1.02, 1.05), Outcome::NotShown, "the low end is still allowed");
        assert_eq!(outcome(0.99, 1.021), Outcome::NotShown);
        assert_eq!(outcome(0.99, 1.02), Outcome::Passed);
        assert_eq!(outcome(0.5, 0.6), Outcome::Passed, "becoming faster is allowed");
    }

    #[test]
    fn a_skewed_control_raises_the_limit() {
        let ratio = interval(1.04, 1.03, 1.05);
        let gate = |control| Gate::of(ratio, control, 100, 1.02);
        assert!(gate(interval(1.001, 0.99, 1.012)).failed(), "this control shows nothing");
        for skewed in [interval(1.03, 1.02, 1.04), interval(1.0 / 1.03, 0.96, 0.98)] {
            assert_eq!(gate(skewed).outcome, Outcome::Passed);
            assert!(gate(skewed).to_string().contains("+3.00 % on top"), "{}", gate(skewed));
        }
    }

    #[test]
    fn a_difference_that_is_not_shown_does_not_fail() {
        let ratio = interval(1.04, 1.03, 1.05);
        let gate = |control, rounds| Gate::of(ratio, control, rounds, 1.02);
        let (calm, wild) = (interval(1.0, 0.99, 1.01), interval(1.0, 0.9, 1.2));
        assert!(gate(calm, 6).failed());
        assert_eq!(gate(wild, 100).outcome, Outcome::NotShown, "the control reaches as far");
        for rounds in 1..TELLING_FROM {
            assert_eq!(gate(calm, rounds).outcome, Outcome::NotShown);
            assert!(gate(calm, rounds).to_string().contains("at least 6 rounds"), "{}", gate(calm, rounds));
        }
    }

    #[test]
    fn messages_state_the_outcome() {
        let text = Gate::of(interval(1.03, 1.025, 1.035), SAME, 100, 1.02).to_string();
        assert_eq!(text, "failed: +3.00 %, at least +2.50 %; +2.00 % is allowed");
        let gate = Gate::of(interval(1.03, 1.01, 1.05), SAME, 100, 1.02);
        // Half the width is 0.0194, the distance 0.0098 as logarithms: 1.99 squared times the rounds.
        assert_eq!(gate.rounds_advised(), Some(396));
        let text = gate.to_string();
        assert!(text.starts_with("not shown: +3.00 %, anything from +1.00 % to +5.00 %"), "{text}");
        assert!(text.contains("no failure") && text.ends_with("about 396 rounds are needed"), "{text}");
        let close = Gate::of(interval(1.02, 1.01, 1.03), SAME, 100, 1.02);
        assert_eq!(close.rounds_advised(), None);
        assert!(close.to_string().ends_with("too small to resolve"));
    }
}
