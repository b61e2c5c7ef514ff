//! Goals: the bound of a figure, and a verdict whether the figure meets it.
//!
//! Each figure that matters has a bound and a verdict, so that the reader need not judge it. A verdict is
//! only as certain as the measurement. If the figure's interval contains the bound, or the figure is
//! nearer to the bound than the noise, the goal is met (or missed) *within noise*, printed as `~`.
//!
//! ```text
//!                     bound
//!   [---x---]           │              met
//!             [----x----┼--]           met~
//!                  [----┼--x---]       missed~
//!                       │   [--x--]    MISSED          (for "at most"; for "at least" the other way round)
//! ```
//!
//! Noise is the difference, as a logarithm, between two arms of a cell that run the same program (A/A
//! controls). The interval measures the scatter of the rounds; the controls measure the error that all
//! rounds share.
//!
//! Invariant: a value equal to the bound meets the bound, both for the figure itself and for an end of its
//! interval.

use serde::Serialize;
use vellum_measure::{Interval, short};

/// The bound of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// At least this value.
    AtLeast(f64),
    /// At most this value.
    AtMost(f64),
}

impl Bound {
    /// Whether the value is on the right side.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(limit) => value >= limit,
            Self::AtMost(limit) => value <= limit,
        }
    }

    /// The limit between met and missed.
    #[must_use]
    pub fn limit(self) -> f64 {
        match self {
            Self::AtLeast(limit) | Self::AtMost(limit) => limit,
        }
    }

    /// The sign in front of the limit.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtLeast(_) => ">=",
            Self::AtMost(_) => "<=",
        }
    }
}

/// The result of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Met, by more than the noise.
    Met,
    /// Met by the estimate, by less than the noise.
    MetWithinNoise,
    /// Missed by the estimate, by less than the noise.
    MissedWithinNoise,
    /// Missed, by more than the noise.
    Missed,
    /// There is no figure.
    NoData,
}

impl Verdict {
    /// Judges an estimate by its interval, if it has one, and by the noise of its run, if measured. Noise is
    /// the logarithm of the ratio between two runs of the same thing.
    #[must_use]
    pub fn of(bound: Bound, estimate: f64, interval: Option<Interval>, noise: Option<f64>) -> Self {
        let met = bound.holds(estimate);
        let whole =
            interval.is_none_or(|found| [found.low, found.high].iter().all(|end| bound.holds(*end) == met));
        let clear = noise.is_none_or(|noise| (estimate / bound.limit()).ln().abs() > noise);
        match (met, whole && clear) {
            (true, true) => Self::Met,
            (true, false) => Self::MetWithinNoise,
            (false, false) => Self::MissedWithinNoise,
            (false, true) => Self::Missed,
        }
    }

    /// The word in a table.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::MetWithinNoise => "met~",
            Self::MissedWithinNoise => "missed~",
            Self::Missed => "MISSED",
            Self::NoData => "no data",
        }
    }

    /// Whether the estimate meets the goal.
    #[must_use]
    pub fn is_met(self) -> bool {
        matches!(self, Self::Met | Self::MetWithinNoise)
    }
}

/// A goal and the measured figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    /// The name of the figure.
    pub what: String,
    /// The unit, as printed behind a figure.
    pub unit: &'static str,
    /// The bound.
    pub bound: Bound,
    /// The figure.
    pub found: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Goal {
    /// A goal for an exact figure.
    pub fn of(what: impl Into<String>, unit: &'static str, bound: Bound, found: Option<f64>) -> Self {
        let verdict = found.map_or(Verdict::NoData, |value| Verdict::of(bound, value, None, None));
        Self { what: what.into(), unit, bound, found, verdict }
    }

    /// A goal for a figure with an interval.
    pub fn within(
        what: impl Into<String>,
        unit: &'static str,
        bound: Bound,
        found: Option<Interval>,
    ) -> Self {
        let verdict = found.map_or(Verdict::NoData, |i| Verdict::of(bound, i.estimate, Some(i), None));
        Self { what: what.into(), unit, bound, found: found.map(|i| i.estimate), verdict }
    }

    /// "speed 3.00x (wanted >= 2.00x)".
    #[must_use]
    pub fn sentence(&self) -> String {
        let figure = |value: f64| format!("{}{}", short(value), self.unit);
        let found = self.found.map_or_else(|| "no figure".to_owned(), figure);
        let noise = if self.verdict == Verdict::MissedWithinNoise { ", within noise" } else { "" };
        format!("{} {found} (wanted {} {}{noise})", self.what, self.bound.sign(), figure(self.bound.limit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_estimate_and_interval() {
        let interval = |estimate, low, high| Some(Interval { estimate, low, high });
        let verdict = |bound, i| Goal::within("x", "", bound, i).verdict;
        assert_eq!(verdict(Bound::AtLeast(2.0), interval(3.0, 2.5, 4.0)), Verdict::Met);
        assert_eq!(verdict(Bound::AtLeast(2.0), interval(2.1, 1.5, 4.0)), Verdict::MetWithinNoise);
        assert_eq!(verdict(Bound::AtMost(2.0), interval(2.1, 1.5, 4.0)), Verdict::MissedWithinNoise);
        assert_eq!(verdict(Bound::AtMost(2.0), interval(3.0, 2.5, 4.0)), Verdict::Missed);
        assert_eq!(verdict(Bound::AtMost(2.0), None), Verdict::NoData);
        // An interval wholly on the other side of the limit than its estimate confirms neither verdict.
        assert_eq!(verdict(Bound::AtMost(2.0), interval(1.9, 2.1, 2.2)), Verdict::MetWithinNoise);
        assert_eq!(verdict(Bound::AtMost(2.0), interval(2.1, 1.8, 1.9)), Verdict::MissedWithinNoise);
    }

    #[test]
    fn a_value_on_the_bound_meets_it() {
        for bound in [Bound::AtMost(2.0), Bound::AtLeast(2.0)] {
            assert_eq!(Goal::of("x", "", bound, Some(2.0)).verdict, Verdict::Met);
            assert_eq!(
                Verdict::of(bound, 2.0, None, Some(0.0)),
                Verdict::MetWithinNoise,
                "no noise is still noise"
            );
        }
        assert_eq!(Goal::of("x", "", Bound::AtMost(0.0), Some(0.0)).verdict, Verdict::Met);
    }

    #[test]
    fn differences_within_noise_are_marked() {
        let of = |estimate: f64, noise: f64| Verdict::of(Bound::AtMost(1.0), estimate, None, Some(noise));
        assert_eq!(of(0.9, 0.05), Verdict::Met);
        assert_eq!(of(0.9, 0.2), Verdict::MetWithinNoise);
        assert_eq!(of(1.1, 0.2), Verdict::MissedWithinNoise);
        assert_eq!(of(1.1, 0.05), Verdict::Missed);
        let interval = Some(Interval { estimate: 0.9, low: 0.8, high: 1.01 });
        assert_eq!(Verdict::of(Bound::AtMost(1.0), 0.9, interval, Some(0.05)), Verdict::MetWithinNoise);
    }

    #[test]
    fn sentences_have_units() {
        let goal = |bound, found| Goal::of("memory", " MiB", bound, found).sentence();
        assert_eq!(goal(Bound::AtMost(2.0), Some(3.0)), "memory 3.00 MiB (wanted <= 2.00 MiB)");
        assert_eq!(goal(Bound::AtLeast(2.0), None), "memory no figure (wanted >= 2.00 MiB)");
        let near = Interval { estimate: 2.1, low: 1.9, high: 2.2 };
        let near = Goal::within("time", "x", Bound::AtMost(2.0), Some(near));
        assert_eq!(near.sentence(), "time 2.10x (wanted <= 2.00x, within noise)");
    }
}
