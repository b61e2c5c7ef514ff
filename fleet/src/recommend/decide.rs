//! Computes the recommended memory limit of one unit, and its reason. The functions are pure.

use std::time::Duration;

/// A memory limit below this is invalid, and so is one above [`MOST`].
const LEAST: f64 = 1048576.0;
const MOST: f64 = (1_u64 << 50) as f64;
/// Numbers are multiples of this.
pub(super) const GRAIN: u64 = 1 << 20;
/// A number that differs by less from the current limit is not worth a change, unless that is too small.
pub(super) const SAME: f64 = 0.05;
/// The largest part by which a limit is lowered at once.
const DOWN: f64 = 0.25;
/// A job whose tasks all stall for more than this part of the time, under a limit of ours, has too little …
const STALLED: f64 = 0.02;
/// … and gets this much more than its limit. An OOM-killed job also gets this much more than its limit.
pub(super) const UP: f64 = 1.25;

/// The history of a unit or container in Prometheus.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct History {
    /// The age of its history, in seconds.
    pub known_seconds: Option<f64>,
    /// The largest recommendation.
    pub advised: Option<f64>,
    /// The largest recommendation by age.
    pub by_age: Option<f64>,
    /// The largest part of time, within the last day, in which all its tasks stalled on memory.
    pub stalled: Option<f64>,
    /// The largest hard limit under which it stalled within the last day, in bytes.
    pub stalled_under: Option<f64>,
    /// The largest hard limit under which it was OOM-killed, in bytes.
    pub killed_under: Option<f64>,
}

impl History {
    /// The combined history of two containers of the same workload.
    #[must_use]
    pub fn and(&self, other: &History) -> History {
        History {
            known_seconds: most(self.known_seconds, other.known_seconds),
            advised: most(self.advised, other.advised),
            by_age: most(self.by_age, other.by_age),
            stalled: most(self.stalled, other.stalled),
            stalled_under: most(self.stalled_under, other.stalled_under),
            killed_under: most(self.killed_under, other.killed_under),
        }
    }
}

/// The larger value. An invalid one takes precedence, so that it is noticed: `f64::max` would hide it.
pub(super) fn most(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let is_absurd = |value: f64| !value.is_finite() || value <= 0.0;
    match (a, b) {
        (Some(a), Some(b)) if is_absurd(a) || (a >= b && !is_absurd(b)) => Some(a),
        (a, b) => b.or(a),
    }
}

/// The user's settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The shortest history for which a number is given.
    pub least: Duration,
    /// The margin above the recommendation, as a part of it.
    pub margin: f64,
}

/// The decision about a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Set this limit.
    Set(u64),
    /// Keep the current limit.
    Keep,
    /// Give no number.
    Nothing,
}

/// Decides for a unit whose limit `current` was set by us; returns the reason, too.
#[must_use]
pub fn decide(history: &History, current: Option<u64>, rules: &Rules) -> (Verdict, String) {
    let hours = |seconds: f64| format!("{:.1} h", seconds / 3600.0);
    let known = history.known_seconds.filter(|seconds| seconds.is_finite()).unwrap_or(0.0);
    if let Some(absurd) = history.killed_under.filter(|limit| !(*limit > 0.0 && *limit * UP <= MOST)) {
        return (Verdict::Nothing, format!("a limit of {absurd} bytes is absurd"));
    }
    // A killed unit gets more at once, because its limit is certainly too small.
    if known < rules.least.as_secs_f64() && history.killed_under.is_none() {
        let least = hours(rules.least.as_secs_f64());
        return (
            Verdict::Nothing,
            format!("its history covers {}; {least} are needed", hours(known.max(0.0))),
        );
    }
    let given = [history.advised, history.by_age];
    if let Some(absurd) = given.into_iter().flatten().find(|value| !(*value > 0.0 && *value <= MOST)) {
        return (Verdict::Nothing, format!("an advice of {absurd} bytes is absurd"));
    }
    let mib = |bytes: f64| format!("{:.0} MiB", bytes / LEAST);
    let (need, ground) = match (history.advised, history.by_age) {
        (None, None) if history.killed_under.is_some() => (0.0, "there is no advice yet".to_owned()),
        (None, None) => return (Verdict::Nothing, "there is no advice in its history".to_owned()),
        (Some(advised), by_age) if by_age.is_none_or(|by_age| by_age <= advised) => {
            (advised, format!("{} was the largest advice by its curve", mib(advised)))
        }
        (_, by_age) => {
            let by_age = by_age.unwrap_or(LEAST);
            (by_age, format!("{} was the most that it touched in its longest age", mib(by_age)))
        }
    };
    let mut bytes = (need * (1.0 + rules.margin)).max(LEAST);
    let mut reason = format!("{ground}; {:.0} % more is given", rules.margin * 100.0);
    if let Some(limit) = history.killed_under.filter(|limit| limit * UP > bytes) {
        bytes = limit * UP;
        reason =
            format!("it was OOM-killed under a limit of {} and gets a quarter more; {ground}", mib(limit));
    }
    if let Some(current) = current.map(|current| current as f64) {
        if let Some(stalled) = history.stalled.filter(|stalled| *stalled > STALLED && stalled.is_finite()) {
            bytes = bytes.max(current * UP);
            reason =
                format!("it stalled {:.0} % of the time under {}; {reason}", stalled * 100.0, mib(current));
        } else if bytes < current * (1.0 - DOWN) {
            bytes = current * (1.0 - DOWN);
            reason += &format!("; from {} it goes down in steps", mib(current));
        }
        if (bytes - current).abs() <= SAME * current && bytes <= current {
            return (Verdict::Keep, format!("{} is set; {reason}", mib(current)));
        }
    }
    // Rounded up, so that nothing is below the recommendation.
    let whole = (bytes.min(MOST) as u64).div_ceil(GRAIN) * GRAIN;
    (Verdict::Set(whole), reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules = Rules { least: Duration::from_secs(86_400), margin: 0.1 };
    const MIB: f64 = LEAST;

    fn of(advised: f64) -> History {
        History { known_seconds: Some(1e6), advised: Some(advised * MIB), ..History::default() }
    }

    #[test]
    fn most_prefers_the_larger_or_invalid_value() {
        for (a, b, larger) in
            [(Some(1.0), Some(2.0), 2.0), (Some(2.0), Some(1.0), 2.0), (None, Some(1.0), 1.0)]
        {
            assert_eq!((most(a, b), most(b, a)), (Some(larger), Some(larger)));
        }
        for absurd in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            for (a, b) in [(absurd, 5.0), (5.0, absurd)] {
                let kept = most(Some(a), Some(b)).unwrap();
                assert!(!(kept > 0.0 && kept.is_finite()), "{a} and {b}: {kept}");
            }
        }
    }

    #[test]
    fn number_is_largest_recommendation_plus_margin() {
        let (verdict, why) = decide(&of(100.0), None, &RULES);
        assert_eq!(verdict, Verdict::Set(110 << 20), "{why}");
        assert!(why.contains("100 MiB") && why.contains("10 % more"), "{why}");
        let by_age = History { by_age: Some(200.0 * MIB), ..of(100.0) };
        assert_eq!(decide(&by_age, None, &RULES).0, Verdict::Set(220 << 20));
        let only_age = History { advised: None, ..by_age };
        assert_eq!(decide(&only_age, None, &RULES).0, Verdict::Set(220 << 20));
    }

    #[test]
    fn current_limit_changes_in_steps() {
        let of_100 = |current: u64| decide(&of(100.0), Some(current << 20), &RULES).0;
        assert_eq!(of_100(112), Verdict::Keep);
        assert_eq!(of_100(108), Verdict::Set(110 << 20), "it would be too little");
        assert_eq!(of_100(400), Verdict::Set(300 << 20), "in steps");
        let stalled = History { stalled: Some(0.3), ..of(100.0) };
        let (verdict, why) = decide(&stalled, Some(160 << 20), &RULES);
        assert_eq!(verdict, Verdict::Set(200 << 20), "{why}");
        assert!(why.contains("stalled 30 %"), "{why}");
        assert_eq!(decide(&stalled, None, &RULES).0, Verdict::Set(110 << 20), "not by a limit of ours");
    }

    #[test]
    fn killed_unit_gets_more_at_once() {
        let killed = History { killed_under: Some(200.0 * MIB), ..of(100.0) };
        let (verdict, why) = decide(&killed, None, &RULES);
        assert_eq!(verdict, Verdict::Set(250 << 20), "{why}");
        assert!(why.contains("OOM-killed under a limit of 200 MiB"), "{why}");
        let little = History { killed_under: Some(50.0 * MIB), ..of(100.0) };
        assert_eq!(decide(&little, None, &RULES), decide(&of(100.0), None, &RULES), "it has grown since");
        let young = History { known_seconds: Some(60.0), advised: None, ..killed };
        assert_eq!(decide(&young, None, &RULES).0, Verdict::Set(250 << 20));
        for absurd in [f64::NAN, f64::INFINITY, 0.0, -1.0, MOST] {
            let (verdict, why) = decide(&History { killed_under: Some(absurd), ..killed }, None, &RULES);
            assert!(verdict == Verdict::Nothing && why.contains("absurd"), "{absurd}: {why}");
        }
    }

    proptest! {
        /// No limit is ever set or kept below the recommendation or below a limit under which it was killed.
        #[test]
        fn number_is_never_below_recommendation(
            advised in prop::option::of(prop::num::f64::ANY),
            by_age in prop::option::of(prop::num::f64::ANY),
            stalled in prop::option::of(prop::num::f64::ANY),
            killed_under in prop::option::of(prop::num::f64::ANY),
            current in prop::option::of(any::<u64>()),
            margin in 0.0..1.0f64,
        ) {
            let known_seconds = Some(1e9);
            let history = History { known_seconds, advised, by_age, stalled, stalled_under: None, killed_under };
            let (verdict, why) = decide(&history, current, &Rules { margin, ..RULES });
            let most = advised.into_iter().chain(by_age).chain(killed_under).fold(0.0, f64::max);
            prop_assert!(!why.is_empty());
            match verdict {
                Verdict::Set(bytes) => prop_assert!(bytes as f64 >= most && bytes as f64 <= MOST),
                Verdict::Keep => prop_assert!(current.is_some_and(|current| current as f64 >= most)),
                Verdict::Nothing => {}
            }
        }
    }
}
