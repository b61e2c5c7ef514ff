//! The two ratios of a comparison, b/a and control/a, and the verdict (faster, slower or no difference).

use crate::{Estimator, Interval, percent};
use serde::Serialize;
use std::fmt;

/// The two ratios by one estimator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratios {
    /// The estimator of both.
    pub estimator: Estimator,
    /// b/a: above 1 if b takes longer.
    pub ratio: Interval,
    /// control/a.
    pub control: Interval,
}

impl Ratios {
    /// The verdict on b that the two intervals allow.
    #[must_use]
    pub fn direction(&self) -> Direction {
        Direction::of(self.ratio, self.control)
    }
}

/// "+0.995 % [+0.990 %, +1.00 %], A/A -0.001 % [-0.005 %, +0.004 %]".
impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, A/A {}", with_interval(&self.ratio), with_interval(&self.control))
    }
}

/// The verdict on a ratio, given its control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Below 1, and below the control's interval.
    Less,
    /// Above 1, and above the control's interval.
    More,
    /// No difference is shown. A difference up to the size of the interval is possible.
    NotShown,
}

impl Direction {
    /// The verdict: a difference is shown only if its interval excludes 1 and lies outside the control's.
    #[must_use]
    pub fn of(ratio: Interval, control: Interval) -> Self {
        if ratio.high < control.low.min(1.0) {
            Self::Less
        } else if ratio.low > control.high.max(1.0) {
            Self::More
        } else {
            Self::NotShown
        }
    }
}

/// "+0.995 % [+0.990 %, +1.00 %]".
pub(super) fn with_interval(i: &Interval) -> String {
    format!("{} [{}, {}]", percent(i.estimate), percent(i.low), percent(i.high))
}
