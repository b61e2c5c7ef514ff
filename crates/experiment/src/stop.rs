//! Stop rules: an experiment ends after some rounds, after a time, or when its ratio is precise enough.
//!
//! The third rule uses the width of the ratio's confidence interval, never its position (see [`Plan`]).

use std::time::Duration;
use vellum_measure::{Interval, Plan};

/// When an experiment ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// After this time, but not before `least` rounds, and never after more than `most`.
    Time {
        /// The time.
        time: Duration,
        /// The fewest rounds, even if the time is over.
        least: usize,
        /// The most rounds.
        most: usize,
    },
    /// When the interval of the ratio is narrow enough for the plan, or the plan's time is over.
    Narrow(Plan),
}

impl Stop {
    /// After this number of rounds.
    #[must_use]
    pub const fn rounds(rounds: usize) -> Stop {
        Stop::Time { time: Duration::ZERO, least: rounds, most: rounds }
    }

    /// The decision after `rounds` rounds in `spent`: how many more rounds to run before the next call, or
    /// `None` to stop. `interval` is called only if the decision depends on it.
    #[inline]
    pub(crate) fn next(
        &self,
        rounds: usize,
        spent: impl Fn() -> Duration,
        interval: impl FnOnce() -> Option<Interval>,
    ) -> Option<usize> {
        match self {
            Stop::Time { time, least, most } => {
                (rounds < *most && (rounds < *least || spent() < *time)).then_some(1)
            }
            Stop::Narrow(plan) => {
                let spent_ns = u64::try_from(spent().as_nanos()).unwrap_or(u64::MAX);
                plan.next(rounds, spent_ns, interval)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_rounds_end_an_experiment() {
        let second = Duration::from_secs(1);
        let next = |stop: Stop, rounds, spent| stop.next(rounds, || spent, || None);
        let stop = Stop::Time { time: second, least: 3, most: 5 };
        assert_eq!(next(stop, 2, second), Some(1), "not before the least");
        assert_eq!(next(stop, 3, second), None);
        assert_eq!(next(stop, 4, second / 2), Some(1));
        assert_eq!(next(stop, 5, second / 2), None);
        assert_eq!(next(Stop::rounds(1), 0, second), Some(1));
        assert_eq!(next(Stop::rounds(0), 0, second), None);
    }
}
