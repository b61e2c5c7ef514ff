//! Schedules the watches: all together stay within one CPU budget, and each gets its turn.
//!
//! Each watch keeps to its own budget (1 % of its job, or 0.05 % of a processor), but five hundred watches
//! would still take a quarter of a processor. One account therefore covers all watches:
//!
//! ```text
//! credit = min(depth, credit + share · time passed − cost)
//!
//! waiting ──due, credit ≥ reserved cost + its own cycle──▶ running ──cycle over──▶ waiting
//!   in the order of due times                              its samples come first, and on time
//! ```
//!
//! A *turn* is one cycle of a watch: a clearing and its samples. A late sample measures a longer window, so
//! begun cycles are finished before others begin, and their expected remaining cost is reserved. Groups
//! outside a cycle, and groups that hardly run, are checked the less often the more groups there are
//! ([`Turns::least_wait`]).
//!
//! Pure: times and costs come from the caller.
//!
//! Invariants: the sum spent never exceeds `depth + share · time` by more than the cost of one step; of the
//! groups that are due, the one that has waited longest is next, so no group starves.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The time for which unspent budget is saved.
const SAVED: Duration = Duration::from_secs(50);
/// The most cycles at once. Those of idle groups go on for ten minutes, and cost little meanwhile.
const RUNNING_MAX: usize = 1024;
/// What a cycle is expected to cost is reserved no longer than this: idle groups' looks come later, and are
/// paid for by what passes.
const RESERVED_FOR: Duration = Duration::from_secs(30);
/// Asking those that hardly run, or are outside of a cycle, may take one part in this many of the budget; but
/// one in [`ASKING_PART_MOST`] rather than that somebody waits for more than [`ASKED_BY`], by which ages of a
/// minute are still found.
const ASKING_PART: f64 = 4.0;
const ASKING_PART_MOST: f64 = 2.0;
const ASKED_BY: f64 = 5.0;
/// The weight of the newest cost of asking.
const NEWEST: f64 = 0.05;
/// What asking costs until it is known.
const ASKING: Duration = Duration::from_micros(100);

pub(crate) type Key = u64;

/// What a step of a watch came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stepped {
    /// For how long nothing needs to be done.
    pub(crate) wait: Duration,
    /// Whether a cycle is under way.
    pub(crate) in_cycle: bool,
    /// Whether the job hardly runs: a look that comes a little late is at the same window then.
    pub(crate) idle: bool,
    /// What the step cost.
    pub(crate) cost: Duration,
    /// What its next cycle will cost.
    pub(crate) estimate: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    due: Duration,
    estimate: Duration,
    running: Option<Running>,
}

/// A cycle under way.
#[derive(Debug, Clone, Copy)]
struct Running {
    since: Duration,
    left: Duration,
}

/// The account and the queues.
#[derive(Debug)]
pub(crate) struct Turns {
    share: f64,
    credit: f64,
    at: Duration,
    seen: Duration,
    asking: f64,
    places: HashMap<Key, Place>,
    waiting: BTreeSet<(Duration, Key)>,
    running: BTreeSet<(Duration, Key)>,
    pub(crate) begun: u64,
}

impl Turns {
    /// All watches together may cost `share` of one processor.
    pub(crate) fn new(share: f64) -> Turns {
        Turns {
            share,
            credit: share * SAVED.as_secs_f64(),
            at: Duration::ZERO,
            seen: Duration::ZERO,
            asking: ASKING.as_secs_f64(),
            places: HashMap::new(),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            begun: 0,
        }
    }

    /// The most that may be spent at once.
    fn depth(&self) -> f64 {
        self.share * SAVED.as_secs_f64()
    }

    /// Enters `now`, and all that was ever `spent`.
    pub(crate) fn account(&mut self, now: Duration, spent: Duration) {
        let earned = self.share * now.saturating_sub(self.at).as_secs_f64();
        let spent_since = spent.saturating_sub(self.seen).as_secs_f64();
        self.credit = (self.credit + earned - spent_since).min(self.depth());
        (self.at, self.seen) = (self.at.max(now), self.seen.max(spent));
    }

    /// A group has come; it is due at once.
    pub(crate) fn join(&mut self, key: Key, estimate: Duration) {
        self.leave(key);
        self.places.insert(key, Place { due: self.at, estimate, running: None });
        self.waiting.insert((self.at, key));
    }

    /// A group has gone.
    pub(crate) fn leave(&mut self, key: Key) {
        if let Some(place) = self.places.remove(&key) {
            self.waiting.remove(&(place.due, key));
            self.running.remove(&(place.due, key));
        }
    }

    /// The group whose step is next, if one is due that can be paid for.
    pub(crate) fn next(&self) -> Option<Key> {
        if self.credit <= 0.0 {
            return None;
        }
        let due =
            |queue: &BTreeSet<(Duration, Key)>| queue.first().filter(|(due, _)| *due <= self.at).copied();
        if let Some((_, key)) = due(&self.running) {
            return Some(key);
        }
        let (_, key) = due(&self.waiting).filter(|_| self.running.len() < RUNNING_MAX)?;
        (self.credit >= self.needed(key)).then_some(key)
    }

    /// The credit that a group's cycle needs to begin.
    fn needed(&self, key: Key) -> f64 {
        let own = self.places.get(&key).map_or(0.0, |place| place.estimate.as_secs_f64());
        // No cycle may cost so much that it never begins.
        (self.reserved() + own).min(self.depth())
    }

    fn reserved(&self) -> f64 {
        let running = self.running.iter().filter_map(|(_, key)| self.places.get(key)?.running);
        running
            .filter(|cycle| self.at.saturating_sub(cycle.since) < RESERVED_FOR)
            .map(|cycle| cycle.left.as_secs_f64())
            .sum()
    }

    /// A step was made.
    pub(crate) fn stepped(&mut self, key: Key, stepped: Stepped) {
        let (at, least) = (self.at, self.least_wait());
        let Some(place) = self.places.get_mut(&key) else { return };
        let queue = if place.running.is_some() { &mut self.running } else { &mut self.waiting };
        queue.remove(&(place.due, key));
        place.estimate = stepped.estimate;
        match (stepped.in_cycle, &mut place.running) {
            (true, Some(cycle)) => cycle.left = cycle.left.saturating_sub(stepped.cost),
            (true, none) => {
                *none = Some(Running { since: at, left: stepped.estimate.saturating_sub(stepped.cost) });
                self.begun += 1;
            }
            (false, some) => *some = None,
        }
        // Who runs is looked at on time.
        let punctual = place.running.is_some() && !stepped.idle;
        if !punctual {
            self.asking += NEWEST * (stepped.cost.as_secs_f64() - self.asking);
        }
        place.due = at + if punctual { stepped.wait } else { stepped.wait.max(least) };
        let queue = if place.running.is_some() { &mut self.running } else { &mut self.waiting };
        queue.insert((place.due, key));
    }

    /// A group that hardly runs, or is outside of a cycle, is asked no more often than this whether something
    /// is due.
    fn least_wait(&self) -> Duration {
        let all = self.asking * self.places.len() as f64 / self.share;
        let seconds = (all * ASKING_PART).min(ASKED_BY.max(all * ASKING_PART_MOST));
        Duration::try_from_secs_f64(seconds).unwrap_or(SAVED).min(SAVED)
    }

    /// For how long nothing can be done; `None` if there is nobody.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let until = |due: Duration| due.saturating_sub(self.at);
        let earned = |credit: f64| {
            let seconds = (credit - self.credit).max(0.0) / self.share;
            Duration::try_from_secs_f64(seconds).unwrap_or(SAVED)
        };
        let running = self.running.first().map(|(due, _)| until(*due).max(earned(f64::MIN_POSITIVE)));
        let waiting = self.waiting.first().filter(|_| self.running.len() < RUNNING_MAX);
        let waiting = waiting.map(|(due, key)| until(*due).max(earned(self.needed(*key))));
        running.into_iter().chain(waiting).min()
    }

    /// Groups that have a cycle under way, and groups that are due and wait for a turn.
    pub(crate) fn at_once(&self) -> [usize; 2] {
        let due = self.waiting.iter().take_while(|(due, _)| *due <= self.at).count();
        [self.running.len(), due]
    }
}

#[cfg(test)]
mod tests;
