//! Measures a job's memory by age, the wall-clock time for which it was not touched. Agents that reclaim
//! memory use these figures. For a job that hardly runs, there are no other results.
//!
//! ```text
//! clear ──┬──────────┬───────────────────┬──▶ wall-clock time
//!         1 s        10 s                60 s     ages
//!         u(1 s)     u(10 s)             u(60 s)  resident, and not referenced since the clearing
//! ```
//!
//! A *look* counts the references since the last clearing; each gives a point of u. An age between two looks
//! is interpolated linearly in ln t. A *cycle*, one clearing and its looks, soon lasts for minutes if the
//! job runs all the time, and gives the ages at no further cost. Looks come at intervals of CPU time. If
//! they are too rare, an extra look is taken at the age itself. While the next cycle waits for the budget,
//! extra looks also measure each age that was never measured, or not for [`REST`] times its length.
//!
//! Invariant: an age comes from one successful clearing.

use std::time::Duration;
use vellum_kernel::Bytes;

/// The ages that are distinguished.
pub const AGES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(600)];
/// Between cycles an age is measured again after this many times itself.
const REST: u32 = 20;
/// A look that comes late by this factor still gives the age.
const LATE: f64 = 1.25;
/// Two looks no further apart than this factor give the ages between them.
const APART: f64 = 4.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aged {
    /// Resident, and not touched for that long.
    pub(crate) untouched: Bytes,
    /// Touched within that time.
    pub(crate) touched: Bytes,
    at: Duration,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ages {
    cleared: Option<Duration>,
    last: Option<(Duration, Bytes, Bytes)>,
    found: [Option<Aged>; AGES.len()],
}

impl Ages {
    /// All references until now are dropped.
    pub(super) fn cleared(&mut self, now: Duration) {
        (self.cleared, self.last) = (Some(now), None);
    }

    /// The references since the clearing can no longer be determined.
    pub(super) fn dropped(&mut self) {
        (self.cleared, self.last) = (None, None);
    }

    pub(super) fn looked(&mut self, now: Duration, touched: Bytes, untouched: Bytes) {
        let Some(cleared) = self.cleared else { return };
        let since = now.saturating_sub(cleared);
        for (age, found) in AGES.iter().zip(&mut self.found) {
            if let Some((touched, untouched)) = at_age(*age, self.last, (since, touched, untouched)) {
                *found = Some(Aged { untouched, touched, at: now });
            }
        }
        self.last = Some((since, touched, untouched));
    }

    /// The wall-clock time until a look is due that gives the next age; `None` if no age is to come.
    /// `elsewhere` is the time until another look will come anyway.
    pub(super) fn due_in(&self, now: Duration, elsewhere: Option<Duration>) -> Option<Duration> {
        let since = now.saturating_sub(self.cleared?);
        let last = self.last.map_or(Duration::ZERO, |(last, ..)| last);
        let age = *AGES.iter().find(|age| **age > last)?;
        // A look soon after the age gives it as well, if there was one soon before.
        let bracketed = elsewhere
            .is_some_and(|other| since.saturating_add(other) <= last.mul_f64(APART) && !last.is_zero());
        (!bracketed).then(|| age.saturating_sub(since))
    }

    pub(super) fn since(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.cleared?))
    }

    /// True if the clearing can give no further age.
    pub(super) fn are_past(&self, now: Duration) -> bool {
        self.cleared.is_some() && self.due_in(now, None).is_none()
    }

    /// True if the next age is worth a separate look, although the cycle has ended.
    pub(super) fn wants(&self, now: Duration) -> bool {
        let last = self.last.map_or(Duration::ZERO, |(last, ..)| last);
        let Some(since) = self.since(now) else { return false };
        let next = AGES.iter().zip(&self.found).find(|(age, _)| **age > last && **age > since.div_f64(LATE));
        next.is_some_and(|(age, found)| found.is_none_or(|found| now.saturating_sub(found.at) >= *age * REST))
    }

    pub(super) fn known(&self) -> impl Iterator<Item = (Duration, Aged)> {
        AGES.into_iter().zip(self.found).filter_map(|(age, found)| Some((age, found?)))
    }
}

/// Memory touched within `age` and not touched, by two looks in a row; `None` if they are too far apart.
fn at_age(
    age: Duration,
    before: Option<(Duration, Bytes, Bytes)>,
    now: (Duration, Bytes, Bytes),
) -> Option<(Bytes, Bytes)> {
    let (since, touched, untouched) = now;
    if since < age || before.is_some_and(|(before, ..)| before >= age) {
        return None;
    }
    match before.filter(|(before, ..)| !before.is_zero() && since <= before.mul_f64(APART)) {
        None => (since <= age.mul_f64(LATE)).then_some((touched, untouched)),
        Some((before, touched_before, untouched_before)) => {
            let ln = |time: Duration| time.as_secs_f64().ln();
            let part = (ln(age) - ln(before)) / (ln(since) - ln(before)).max(f64::MIN_POSITIVE);
            let between = |from: Bytes, to: Bytes| {
                Bytes((from.0 as f64 + (to.0 as f64 - from.0 as f64) * part.clamp(0.0, 1.0)) as u64)
            };
            Some((between(touched_before, touched), between(untouched_before, untouched)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn known(ages: &Ages) -> Vec<(u64, u64)> {
        ages.known().map(|(age, found)| (age.as_secs(), found.untouched.0 / MIB)).collect()
    }

    fn look(ages: &mut Ages, now: f64, untouched: u64) {
        ages.looked(at(now), Bytes((100 - untouched) * MIB), Bytes(untouched * MIB));
    }

    #[test]
    fn looks_at_ages_give_them_and_looks_around_them_too() {
        let mut ages = Ages::default();
        look(&mut ages, 5.0, 90);
        assert_eq!(known(&ages), [], "without a clearing nothing is known");
        ages.cleared(at(10.0));
        look(&mut ages, 11.1, 80);
        assert_eq!(known(&ages), [(1, 80)]);
        // 5 and 20 s after the clearing: 10 s lies in the middle between their logarithms.
        look(&mut ages, 15.0, 60);
        look(&mut ages, 30.0, 40);
        assert_eq!(known(&ages), [(1, 80), (10, 50)]);
        look(&mut ages, 70.0, 30);
        assert_eq!(known(&ages), [(1, 80), (10, 50), (60, 30)]);
        // Far apart, and far behind: nothing is said of ten minutes.
        look(&mut ages, 10.0 + 900.0, 10);
        assert_eq!(known(&ages).len(), 3);
    }

    #[test]
    fn a_look_far_behind_an_age_does_not_give_it() {
        let mut ages = Ages::default();
        ages.cleared(at(0.0));
        look(&mut ages, 2.0, 50);
        assert_eq!(known(&ages), []);
        ages.dropped();
        look(&mut ages, 10.0, 50);
        assert_eq!(known(&ages), [], "what is no longer known gives nothing");
    }

    #[test]
    fn a_look_is_due_at_an_age_unless_others_come_around_it() {
        let mut ages = Ages::default();
        assert_eq!(ages.due_in(at(1.0), None), None);
        ages.cleared(at(1.0));
        assert_eq!(ages.due_in(at(1.5), Some(at(20.0))), Some(at(0.5)));
        look(&mut ages, 1.8, 50);
        assert_eq!(ages.due_in(at(1.8), Some(at(0.8))), None, "0.8 and 1.6 s give 1 s");
        assert_eq!(ages.due_in(at(1.8), Some(at(20.0))), Some(at(0.2)));
        assert_eq!(ages.due_in(at(9.0), None), Some(Duration::ZERO), "it is due, and late");
        look(&mut ages, 2.0, 50);
        assert_eq!(ages.due_in(at(2.0), None), Some(at(9.0)));
    }

    #[test]
    fn between_cycles_ages_that_are_not_known_or_are_old_are_wanted() {
        let mut ages = Ages::default();
        assert!(!ages.wants(at(1.0)), "there is no clearing");
        ages.cleared(at(2.0));
        look(&mut ages, 2.8, 50);
        assert!(ages.wants(at(2.8)), "1 s is not known");
        look(&mut ages, 3.0, 50);
        ages.cleared(at(4.0));
        look(&mut ages, 4.8, 50);
        assert!(!ages.wants(at(4.8)), "1 s is known");
        look(&mut ages, 5.1, 50);
        assert!(ages.wants(at(5.1)), "10 s is not");
        assert!(!ages.wants(at(4.0 + 800.0)), "no age is left that this clearing could give");
        ages.cleared(at(24.0));
        assert!(!ages.wants(at(24.0)), "1 s was found 18.9 s ago");
        assert!(ages.wants(at(25.2)), "and is old now");
    }
}
