//! The plan: measures a ratio until its confidence interval is narrow enough, or until the time is up.
//!
//! A 95 % test that is repeated until it first shows a difference is wrong in far more than 5 of 100 cases.
//! The plan therefore uses only the *width* of the interval, never its position. The width does not show
//! which operation is faster: a log-ratio in random order scatters symmetrically, so the estimate and the
//! width are uncorrelated. A small bias remains, because the width scatters too, and stopping at the first
//! narrow interval prefers intervals that are narrow by chance. Few interim checks (*looks*) keep this bias
//! small. The first look comes at 50 rounds. At each look, the width determines how many rounds follow: 50 to
//! 100 % of the number so far (two-stage sampling of Stein 1945, repeated). In simulations, 94 to 95 of 100
//! final intervals hold the true value, up to one point less than stated (see `coverage.rs`).
//!
//! ```text
//! rounds   50 ──▶ look ──▶ 100 ──▶ look ──▶ 200 ──▶ look: needs 290 ──▶ 300  ──▶ look: narrow enough
//!          at most double; at least half again                            budget spent at any time: stop
//! ```
//!
//! The plan reads no clock: the caller passes the time spent.

use crate::Interval;

/// The rounds before the first look: from this number on intervals cover.
pub const ROUNDS_MIN: usize = 50;
/// The most useful number of rounds: with more, the changes of the machine dominate.
pub const ROUNDS_MAX: usize = 1_000_000;

/// A look is followed by at least this share of the rounds so far …
const MORE_MIN: f64 = 0.5;
/// … and at most this.
const MORE_MAX: f64 = 1.0;
/// The budget counts as spent if it has time for less than this share of the rounds so far.
const MORE_WORTHWHILE: f64 = 0.02;

/// A plan of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Half the width, as a logarithm, at which an interval is narrow enough: 0.001 is 0.1 % either way.
    pub half_width: f64,
    /// The time for the measurement, in nanoseconds.
    pub budget_ns: u64,
    /// Before this many rounds the interval is not computed, and only the budget stops the measurement.
    pub rounds_min: usize,
    /// The most rounds.
    pub rounds_max: usize,
}

impl Plan {
    /// A plan that ends when the interval is this narrow (half its width, as a logarithm), or this many
    /// nanoseconds are spent.
    #[must_use]
    pub fn new(half_width: f64, budget_ns: u64) -> Self {
        Self { half_width, budget_ns, rounds_min: ROUNDS_MIN, rounds_max: ROUNDS_MAX }
    }

    /// How many more rounds to measure before the next call, at least one, after `rounds` rounds that took
    /// `spent_ns` together; `None` to stop. `interval`, the ratio's, is only called at a look.
    #[must_use]
    pub fn next(
        &self,
        rounds: usize,
        spent_ns: u64,
        interval: impl FnOnce() -> Option<Interval>,
    ) -> Option<usize> {
        let affordable = self.affordable(rounds, spent_ns);
        let worthwhile = ((rounds as f64 * MORE_WORTHWHILE) as usize).max(1);
        if rounds >= self.rounds_max || affordable < worthwhile {
            return None;
        }
        let wanted = if rounds < self.rounds_min {
            self.rounds_min - rounds
        } else {
            let more = match interval() {
                Some(found) if half_width(&found) <= self.half_width => return None,
                Some(found) => rounds_needed(rounds, &found, self.half_width).unwrap_or(usize::MAX) - rounds,
                None => usize::MAX,
            };
            let share = |share: f64| ((rounds as f64 * share) as usize).max(1);
            more.clamp(share(MORE_MIN), share(MORE_MAX))
        };
        Some(wanted.min(affordable).min(self.rounds_max - rounds))
    }

    /// The number of further rounds that fit in the budget, if they take as long as those so far.
    fn affordable(&self, rounds: usize, spent_ns: u64) -> usize {
        let left = self.budget_ns.saturating_sub(spent_ns);
        if rounds == 0 {
            // The length of a round is not measured yet: one round measures it.
            return usize::from(left > 0);
        }
        // Rounds that took no time have no length to divide by; their number is not limited.
        let round_ns = spent_ns as f64 / rounds as f64;
        if round_ns > 0.0 { (left as f64 / round_ns) as usize } else { self.rounds_max }
    }
}

fn half_width(interval: &Interval) -> f64 {
    (interval.high / interval.low).ln() / 2.0
}

/// About how many rounds in total would narrow `interval`, found from `rounds`, to a half-width of
/// `half_width` (as a logarithm); at least `rounds`. Widths shrink with the root of the number of rounds.
///
/// `None` if no number would, because the half-width, or the interval, is not a positive number.
#[must_use]
pub fn rounds_needed(rounds: usize, interval: &Interval, half_width: f64) -> Option<usize> {
    let times = (self::half_width(interval) / half_width).powi(2).max(1.0);
    let needed = (rounds as f64 * times).round();
    (half_width > 0.0 && needed < usize::MAX as f64).then_some(needed as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(half_width: f64) -> Option<Interval> {
        Some(Interval { estimate: 1.0, low: (-half_width).exp(), high: half_width.exp() })
    }

    #[test]
    fn widths_shrink_as_the_root_of_the_rounds() {
        let found = ratio(0.04).unwrap();
        assert_eq!(rounds_needed(100, &found, 0.02), Some(400));
        assert_eq!(rounds_needed(100, &found, 0.1), Some(100), "there are enough already");
        assert_eq!(rounds_needed(100, &found, 0.0), None);
        assert_eq!(rounds_needed(100, &found, f64::NAN), None);
    }

    #[test]
    fn the_next_look_follows_from_the_width() {
        let plan = Plan::new(0.001, 1_000_000_000);
        let next = |rounds, half_width| plan.next(rounds, 1000 * rounds as u64, || ratio(half_width));
        assert_eq!(next(0, 9.0), Some(1), "to learn how long a round is");
        assert_eq!(next(1, 0.0), Some(49), "no look before the least");
        assert_eq!(next(50, 0.1), Some(50), "far off: double");
        assert_eq!(next(400, 0.0013), Some(276), "1.3 squared times 400 is 676");
        assert_eq!(next(400, 0.00101), Some(200), "at least half again");
        assert_eq!(next(400, 0.000_999), None);
        assert_eq!(plan.next(400, 400_000, || None), Some(400), "no interval is not narrow");
    }

    #[test]
    fn the_budget_is_kept() {
        let plan = Plan::new(0.001, 1_000_000);
        assert_eq!(plan.next(100, 900_000, || ratio(1.0)), Some(11), "as many as fit in");
        assert_eq!(plan.next(100, 990_000, || ratio(1.0)), None);
        assert_eq!(plan.next(1, 1_000_001, || ratio(1.0)), None);
        assert_eq!(Plan::new(0.001, 0).next(0, 0, || None), None);
        let few = Plan { rounds_max: 60, ..plan };
        assert_eq!(few.next(50, 50, || ratio(1.0)), Some(10));
        assert_eq!(few.next(60, 60, || ratio(1.0)), None);
    }
}
