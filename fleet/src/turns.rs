//! Schedules the watches: all together stay within one CPU budget, and each gets its turn.
//!
//! Each watch keeps to its own budget: 1 % of its job, or 0.05 % of a processor. At 0.05 %, five hundred
//! watches take a quarter of a processor. A common budget therefore limits them, by a token bucket:
//!
//! ```text
//! credit = min(depth, credit + share · time passed − cost)        share: of one processor, for all watches
//!                                                                 depth: the most that can be saved up
//! waiting ──due, credit ≥ reserved cost + cycle's cost──▶ running ──cycle over──▶ waiting
//!   in the order of due times                             its samples come first, and on time
//! ```
//!
//! A *turn* is one cycle of a watch: it clears the pages' accessed bits, then takes samples. A late sample
//! measures a longer window, so running cycles have precedence, and their expected remaining cost is
//! reserved. The more watches there are, the more rarely steps are taken outside cycles and for jobs that
//! hardly run ([`Turns::least_wait`]).
//!
//! The scheduler is pure: times and costs come from the caller.
//!
//! Invariants: the CPU time spent never exceeds `depth + share · time` by more than the cost of one step. The
//! due watch that has waited longest is next, so none starves.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The time for which unused budget is saved.
const SAVED: Duration = Duration::from_secs(50);
/// The maximum number of running cycles. Cycles of idle groups take ten minutes, at little cost.
const RUNNING_MAX: usize = 1024;
/// The longest time for which a cycle's expected cost is reserved. Samples of idle groups come later and are
/// paid from the current budget.
const RESERVED_FOR: Duration = Duration::from_secs(30);
/// Checks of groups that hardly run, or are outside a cycle, may take a quarter of the budget. If a group
/// would otherwise wait longer than [`ASKED_BY`], they may take half of it ([`ASKING_PART_MOST`]). This wait
/// is short enough to find ages of a minute.
const ASKING_PART: f64 = 4.0;
const ASKING_PART_MOST: f64 = 2.0;
const ASKED_BY: f64 = 5.0;
/// The weight of the newest check in the mean cost.
const NEWEST: f64 = 0.05;
/// The assumed cost of a check before the first one.
const ASKING: Duration = Duration::from_micros(100);

pub(crate) type Key = u64;

/// The result of a watch's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stepped {
    /// The time until the next step.
    pub(crate) wait: Duration,
    /// True if a cycle is running.
    pub(crate) in_cycle: bool,
    /// True if the job hardly runs: a slightly late sample then still has the same window.
    pub(crate) idle: bool,
    /// The cost of the step.
    pub(crate) cost: Duration,
    /// The estimated cost of the next cycle.
    pub(crate) estimate: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    due: Duration,
    estimate: Duration,
    running: Option<Running>,
}

/// A running cycle.
#[derive(Debug, Clone, Copy)]
struct Running {
    since: Duration,
    left: Duration,
}

/// The token bucket, and the queues of waiting and running watches.
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
    /// A schedule in which all watches may cost `share` of one processor together.
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

    /// The maximum that may be spent at once.
    fn depth(&self) -> f64 {
        self.share * SAVED.as_secs_f64()
    }

    /// Updates the account with the time and the total cost so far.
    pub(crate) fn account(&mut self, now: Duration, spent: Duration) {
        let earned = self.share * now.saturating_sub(self.at).as_secs_f64();
        let spent_since = spent.saturating_sub(self.seen).as_secs_f64();
        self.credit = (self.credit + earned - spent_since).min(self.depth());
        (self.at, self.seen) = (self.at.max(now), self.seen.max(spent));
    }

    /// Adds a group, which is due at once.
    pub(crate) fn join(&mut self, key: Key, estimate: Duration) {
        self.leave(key);
        self.places.insert(key, Place { due: self.at, estimate, running: None });
        self.waiting.insert((self.at, key));
    }

    /// Removes a group.
    pub(crate) fn leave(&mut self, key: Key) {
        if let Some(place) = self.places.remove(&key) {
            self.waiting.remove(&(place.due, key));
            self.running.remove(&(place.due, key));
        }
    }

    /// The group whose step is next, if one is due and within budget.
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

    /// The credit needed to begin a group's cycle.
    fn needed(&self, key: Key) -> f64 {
        let own = self.places.get(&key).map_or(0.0, |place| place.estimate.as_secs_f64());
        // Limited, so that every cycle can begin.
        (self.reserved() + own).min(self.depth())
    }

    fn reserved(&self) -> f64 {
        let running = self.running.iter().filter_map(|(_, key)| self.places.get(key)?.running);
        running
            .filter(|cycle| self.at.saturating_sub(cycle.since) < RESERVED_FOR)
            .map(|cycle| cycle.left.as_secs_f64())
            .sum()
    }

    /// Enters the result of a step.
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
        // A group that runs is sampled on time.
        let punctual = place.running.is_some() && !stepped.idle;
        if !punctual {
            self.asking += NEWEST * (stepped.cost.as_secs_f64() - self.asking);
        }
        place.due = at + if punctual { stepped.wait } else { stepped.wait.max(least) };
        let queue = if place.running.is_some() { &mut self.running } else { &mut self.waiting };
        queue.insert((place.due, key));
    }

    /// The shortest wait between checks of a group that hardly runs, or is outside a cycle.
    fn least_wait(&self) -> Duration {
        let all = self.asking * self.places.len() as f64 / self.share;
        let seconds = (all * ASKING_PART).min(ASKED_BY.max(all * ASKING_PART_MOST));
        Duration::try_from_secs_f64(seconds).unwrap_or(SAVED).min(SAVED)
    }

    /// The time until the next step; `None` without groups.
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

    /// The number of groups with a running cycle, and of groups that are due and wait.
    pub(crate) fn at_once(&self) -> [usize; 2] {
        let due = self.waiting.iter().take_while(|(due, _)| *due <= self.at).count();
        [self.running.len(), due]
    }
}

#[cfg(test)]
mod tests;
