//! Computes the four recommended numbers of one container, and their reason. The functions are pure.
//!
//! | number | meaning |
//! | --- | --- |
//! | uncapped target | the largest recommendation plus the margin; 25 % above a limit under which it stalled or was killed |
//! | target | the uncapped target within the object's `minAllowed` and `maxAllowed` |
//! | lower bound | the largest recommendation without the margin, as less memory makes the container slow; if the container was killed under a limit, at least just above that limit |
//! | upper bound | 25 % above the target; more after a short history: after one day, 100 % |
//!
//! VerticalPodAutoscaler's updater restarts pods with requests below the lower or above the upper bound.

use super::super::decide::{GRAIN, History, Rules, SAME, UP, Verdict, decide};

/// The minimum of the upper bound's margin, and the history after which the margin is 100 %.
const ABOVE: f64 = 0.25;
const DAY: f64 = 86_400.0;
/// The maximum of the upper bound's margin.
const ABOVE_MAX: f64 = 10.0;
/// No number is above this: the bound of [`decide`] with all additions made here.
const MOST: f64 = (1_u64 << 55) as f64;

/// The numbers of a container, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The recommended request.
    pub(super) target: u64,
    /// The request below which memory is too small.
    pub(super) lower: u64,
    /// The request above which memory is wasted.
    pub(super) upper: u64,
    /// The target without the object's bounds.
    pub(super) uncapped: u64,
}

/// The minimum and maximum that an object allows for a container.
pub(super) type Allowed = (Option<u64>, Option<u64>);

/// The numbers with their reason. `before` has the last written numbers.
/// Otherwise, the reason for which there are none.
pub(super) fn numbers(
    history: &History,
    allowed: Allowed,
    before: Option<&Numbers>,
    rules: &Rules,
) -> Result<(Numbers, String), String> {
    let (verdict, mut why) = decide(history, None, rules);
    let Verdict::Set(advised) = verdict else { return Err(why) };
    let mut uncapped = advised;
    if let Some(limit) = history.stalled_under {
        if !(limit > 0.0 && limit * UP <= MOST) {
            return Err(format!("a limit of {limit} bytes is absurd"));
        }
        let more = grains(limit * UP);
        if more > uncapped {
            uncapped = more;
            let mib = limit / GRAIN as f64;
            why = format!("it stalled under a limit of {mib:.0} MiB and gets a quarter more; {why}");
        }
    }
    let (least, most) = (allowed.0.unwrap_or(0), allowed.1.unwrap_or(u64::MAX));
    if least > most {
        return Err(format!("minAllowed, {least} bytes, is above maxAllowed, {most} bytes"));
    }
    let need = [history.advised, history.by_age].into_iter().flatten().fold(0.0, f64::max);
    let too_little = history.killed_under.map_or(0, |limit| grains(limit) + GRAIN);
    let days = history.known_seconds.unwrap_or(DAY).max(1.0) / DAY;
    let above = (1.0 / days).clamp(ABOVE, ABOVE_MAX);
    let now = Numbers {
        target: uncapped.clamp(least, most),
        lower: grains(need).max(too_little).min(uncapped).clamp(least, most),
        upper: grains(uncapped as f64 * (1.0 + above)).clamp(least, most),
        uncapped,
    };
    if now.target != uncapped {
        let bound = if now.target < uncapped { "maxAllowed" } else { "minAllowed" };
        why += &format!("; {bound} makes it {:.0} MiB", now.target as f64 / GRAIN as f64);
    }
    match before {
        Some(before) if now.is_near(before) && before.is_within(least, most) => Ok((*before, why)),
        _ => Ok((now, why)),
    }
}

/// Rounded up, so that nothing is below the recommendation.
fn grains(bytes: f64) -> u64 {
    (bytes.min(MOST).ceil() as u64).div_ceil(GRAIN) * GRAIN
}

impl Numbers {
    /// True if `before` can stay: none of its numbers is too small, and none is much too large.
    fn is_near(&self, before: &Numbers) -> bool {
        let near = |now: u64, before: u64| before >= now && (before - now) as f64 <= SAME * now as f64;
        near(self.target, before.target)
            && near(self.lower, before.lower)
            && near(self.uncapped, before.uncapped)
            && self.upper.abs_diff(before.upper) as f64 <= SAME * self.upper as f64
            && before.lower <= before.target
            && before.target <= before.upper
    }

    fn is_within(&self, least: u64, most: u64) -> bool {
        [self.target, self.lower, self.upper].into_iter().all(|bytes| (least..=most).contains(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const RULES: Rules = Rules { least: Duration::from_secs(86_400), margin: 0.1 };
    const MIB: u64 = 1 << 20;

    const FREE: Allowed = (None, None);

    fn of(advised: f64, days: f64) -> History {
        let (known_seconds, advised) = (Some(days * DAY), Some(advised * MIB as f64));
        History { known_seconds, advised, ..History::default() }
    }

    #[test]
    fn bounds_lie_around_the_target() {
        let (got, why) = numbers(&of(100.0, 8.0), FREE, None, &RULES).unwrap();
        let right = Numbers { target: 110 * MIB, lower: 100 * MIB, upper: 138 * MIB, uncapped: 110 * MIB };
        assert_eq!(got, right, "{why}");
        let (young, _) = numbers(&of(100.0, 1.0), FREE, None, &RULES).unwrap();
        assert_eq!(young.upper, 220 * MIB);
        let stalled = History { stalled_under: Some(100.0 * MIB as f64), ..of(100.0, 8.0) };
        let (up, why) = numbers(&stalled, FREE, None, &RULES).unwrap();
        assert_eq!((up.target, up.lower), (125 * MIB, 100 * MIB), "{why}");
        assert!(why.contains("stalled"), "{why}");
        let killed = History { killed_under: Some(200.0 * MIB as f64), ..of(100.0, 0.1) };
        let (up, why) = numbers(&killed, FREE, None, &RULES).unwrap();
        assert_eq!((up.target, up.lower), (250 * MIB, 201 * MIB), "{why}");
    }

    #[test]
    fn object_bounds_apply_and_small_changes_are_ignored() {
        let of_100 = |allowed| numbers(&of(100.0, 8.0), allowed, None, &RULES);
        let (got, why) = of_100((Some(200 * MIB), None)).unwrap();
        assert_eq!((got.target, got.lower, got.uncapped), (200 * MIB, 200 * MIB, 110 * MIB), "{why}");
        let (got, why) = of_100((None, Some(50 * MIB))).unwrap();
        assert_eq!((got.target, got.upper), (50 * MIB, 50 * MIB));
        assert!(why.contains("maxAllowed"), "{why}");
        assert!(of_100((Some(2), Some(1))).unwrap_err().contains("maxAllowed"));

        let (before, _) = numbers(&of(103.0, 8.0), FREE, None, &RULES).unwrap();
        let then = |advised: f64| numbers(&of(advised, 8.0), FREE, Some(&before), &RULES).unwrap().0;
        assert_eq!(then(101.0), before);
        assert!(then(104.0).target > before.target && then(90.0).target < before.target);
    }

    proptest! {
        /// For any input, the numbers are in order, not below the recommendation, and in range.
        #[test]
        fn numbers_are_valid_for_any_input(
            known_seconds in prop::option::of(prop::num::f64::ANY),
            advised in prop::option::of(prop_oneof![prop::num::f64::ANY, 1e5..1e12f64]),
            by_age in prop::option::of(prop_oneof![prop::num::f64::ANY, 1e5..1e12f64]),
            stalled_under in prop::option::of(prop_oneof![prop::num::f64::ANY, 1e5..1e12f64]),
            killed_under in prop::option::of(prop_oneof![prop::num::f64::ANY, 1e5..1e12f64]),
            before in prop::option::of(any::<[u64; 4]>()),
            allowed in any::<(Option<u64>, Option<u64>)>(),
        ) {
            let known_seconds = known_seconds.or(Some(1e6));
            let history = History { known_seconds, advised, by_age, stalled: None, stalled_under, killed_under };
            let before =
                before.map(|[target, lower, upper, uncapped]| Numbers { target, lower, upper, uncapped });
            if let Ok((got, why)) = numbers(&history, allowed, before.as_ref(), &RULES) {
                let advice = [advised, by_age].into_iter().flatten().fold(0.0, f64::max);
                prop_assert!(got.lower <= got.target && got.target <= got.upper, "{:?} {}", got, why);
                prop_assert!(got.uncapped as f64 >= advice && got.uncapped < 1 << 60);
                let most = allowed.1.unwrap_or(u64::MAX);
                prop_assert!(got.target as f64 >= advice.min(most as f64) && got.target <= most);
                prop_assert!(got.target >= allowed.0.unwrap_or(0));
            }
        }
    }
}
