//! Decides, in each period, which jobs run and how much memory each gets: a pure function of the jobs'
//! claims, the machine's state, and earlier decisions.
//!
//! ```text
//! claims (need · kept) ─▶ order ─▶ admit while it fits ─┬─▶ runs: target = need + its share of the rest
//!   budget, machine,       urgency + turns waited       │         reclaim its part of the excess
//!   brake, slots                                        └─▶ suspended: reclaim all that can be reclaimed
//! ```
//!
//! # Rules
//!
//! 1. A job *needs* its worth (the memory of its working set at the knee), or the memory that it holds if
//!    the worth is not known. A job from which nothing can be reclaimed (no privilege, no swap) needs at
//!    least the memory that it holds, and *keeps* that while suspended. A job from which memory can be
//!    reclaimed only while it is suspended also needs what it holds, but keeps nothing.
//! 2. No memory is reclaimed from any job while all fit: memory beyond the knee is wasted only when another
//!    job needs it.
//! 3. If the needs do not fit, jobs are suspended whole, the least urgent first: some jobs at their knee do
//!    more work than all jobs below it.
//! 4. A suspended job's urgency rises by one with each *turn* (set time) that it waits. A resumed job runs
//!    for at least a turn (or half the bound of rule 7, if less) before it is suspended again. While the
//!    first waiting job does not fit, no other is resumed before it. Each job therefore runs again,
//!    whatever its urgency and size.
//! 5. The first job in the order always runs, whatever it needs: a single job is never stopped for its size.
//! 6. While tasks stall on memory for a larger share of the time than the *brake*, nothing is reclaimed.
//!    If that lasts, and the governed jobs wait for faults for more than that share too, the number of
//!    jobs that may run (*slots*) falls by one.
//! 7. No job is suspended for longer than a bound. The job that waits longest is *due* when it has waited
//!    for the bound, or earlier, so that the jobs after it become due one by one, evenly. A due job runs
//!    whatever the needs. Among equally urgent jobs, the job that has run longest stops for it first.
//!
//! Invariants:
//! - No job waits longer than the bound, if a decision follows within [`Decided::within`].
//! - The needs of the running jobs fit in the budget. Exceptions: one job runs alone, the overload began at
//!   the last decision, or a due job has just been resumed.
//!
//! Source: Nishigaki 1981 (see `vellum_workset`), section 5: a window for each job, which sets the number of
//! running jobs. Departures: urgency and turns, the brake, and the memory that the machine itself needs.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use vellum_kernel::Bytes;

/// The most that is taken from one job in one period.
pub const BATCH_MAX: Bytes = Bytes(64 << 20);
/// For how many decisions an overload must last before a job is suspended for it.
pub const OVERLOADS: u32 = 2;
/// Waiting jobs come back no faster than this, one by one.
const SPACING_MIN: Duration = Duration::from_millis(100);
/// The part of the bound that is left for carrying out the decision.
const MARGIN: u32 = 20;
/// For how many decisions the brake must hold before one job fewer runs.
pub const BRAKES: u32 = 5;

/// A job's claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Its urgency; larger is more urgent.
    pub priority: u8,
    /// The memory that it holds.
    pub resident: Bytes,
    /// Its worth: z at its knee, if that was found.
    pub worth: Option<Bytes>,
    /// True if memory can be taken from it once it is suspended.
    pub reclaimable: bool,
    /// True if what exceeds its worth can be taken while it runs.
    pub reclaimable_running: bool,
}

/// The situation of all jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation {
    /// Time since the governor began.
    pub now: Duration,
    /// The budget of all jobs.
    pub budget: Bytes,
    /// The machine's available memory.
    pub available: Bytes,
    /// The part of it to leave.
    pub reserve: Bytes,
    /// The part of the time since the last decision for which tasks stalled on memory; 0 if not counted.
    pub stalled: f64,
    /// The part of time that our own jobs waited for faults since then, by S and their number.
    pub waited: f64,
}

/// The decision for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// True if it runs.
    pub runs: bool,
    /// A job that runs because it has waited for the bound.
    pub due: bool,
    /// Its target.
    pub target: Bytes,
    /// The bytes to reclaim from it in this period.
    pub take: Bytes,
}

/// Why less can run than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// No limit: all jobs fit.
    #[default]
    None,
    /// The budget.
    Budget,
    /// The machine's available memory.
    Machine,
    /// Stalls on memory.
    Brake,
}

impl Limit {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Limit::None => "nothing is short",
            Limit::Budget => "the budget is short",
            Limit::Machine => "the machine's memory is short",
            Limit::Brake => "tasks stall on memory",
        }
    }
}

/// The decisions of one period.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decided {
    /// For each claim; `None` where there was none.
    pub jobs: Vec<Option<Decision>>,
    /// The budget in force, with the machine's available memory.
    pub budget: Bytes,
    /// True if memory is short: more is held, or needed, than the budget.
    pub squeezed: bool,
    /// True if stalls keep anything from being taken.
    pub braked: bool,
    /// The limit on the number of running jobs.
    pub limit: Limit,
    /// When the next decision has to be made, at the latest, for a job that waits.
    pub within: Option<Duration>,
}

/// The policy: since when each job waits, and the number of slots.
#[derive(Debug, Clone)]
pub struct Policy {
    brake: f64,
    turn: Duration,
    /// The longest that a job is suspended without a break.
    bound: Duration,
    jobs: Vec<Memory>,
    overloads: u32,
    brakes: u32,
    /// The most jobs that may run; lowered by the brake.
    slots: usize,
    /// When the brake held last, or a slot was given back.
    calm_since: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    present: bool,
    suspended_at: Option<Duration>,
    resumed_at: Option<Duration>,
    /// Its wait before it was resumed: kept until it has run for a turn.
    waited_before: Duration,
    needed: Bytes,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    index: usize,
    need: Bytes,
    keep: Bytes,
    /// Resumed less than a turn ago.
    fresh: bool,
    due: bool,
    rank: u64,
    waited: Duration,
    suspended: bool,
    resumed_at: Option<Duration>,
}

impl Policy {
    /// A policy under which nobody waits yet.
    pub fn new(brake: f64, turn: Duration, bound: Duration) -> Policy {
        let jobs = Vec::new();
        Policy {
            brake,
            turn,
            bound,
            jobs,
            overloads: 0,
            brakes: 0,
            slots: usize::MAX,
            calm_since: Duration::ZERO,
        }
    }

    /// Decides for all jobs; `claims[i]` is always the same job's, `None` while it does not exist.
    pub fn decide(&mut self, situation: &Situation, claims: &[Option<Claim>]) -> Decided {
        self.jobs.resize(claims.len(), Memory::default());
        let held = total(claims.iter().flatten().map(|claim| claim.resident));
        let machine = Bytes((held.0 + situation.available.0).saturating_sub(situation.reserve.0));
        let budget = situation.budget.min(machine);
        let danger = situation.available < situation.reserve;
        let braked = self.heed_brake(situation, claims);
        let order = self.order(situation.now, danger, claims);

        let admitted = self.admit(budget, &order);
        let overloaded = admitted.len() < order.len();
        self.overloads = if overloaded { self.overloads + 1 } else { 0 };
        let wait_and_see = self.overloads < OVERLOADS && !danger;
        let kept_on = |job: &&Candidate| admitted.contains(&job.index) || (wait_and_see && !job.suspended);
        let running: Vec<Candidate> = order.iter().filter(kept_on).copied().collect();
        self.remember(situation.now, &order, &running);

        let needed = total(running.iter().map(|job| job.need));
        let kept = total(order.iter().filter(|job| !has(&running, job.index)).map(|job| job.keep));
        let squeezed = held > budget || overloaded;
        let spare = Bytes(budget.0.saturating_sub(needed.0 + kept.0));
        let over = Bytes(held.0.saturating_sub(budget.0));
        let excess = |job: &Candidate| excess(claims, job);
        let all_excess = total(running.iter().map(excess));
        let mut jobs = vec![None; claims.len()];
        for job in &order {
            let Some(claim) = claims[job.index] else { continue };
            let decision = if has(&running, job.index) {
                let target = Bytes(job.need.0 + share(spare, job.need, needed));
                let wanted =
                    if held > budget { share(over.min(all_excess), excess(job), all_excess) } else { 0 };
                Decision { runs: true, due: job.due, target, take: Bytes(wanted).min(BATCH_MAX) }
            } else {
                let all = if claim.reclaimable { claim.resident.min(BATCH_MAX) } else { Bytes(0) };
                Decision { runs: false, due: false, target: Bytes(0), take: all }
            };
            let take = if braked { Bytes(0) } else { decision.take };
            jobs[job.index] = Some(Decision { take, ..decision });
        }
        let limit = match () {
            () if !overloaded => Limit::None,
            () if admitted.len() >= self.slots => Limit::Brake,
            () if machine < situation.budget => Limit::Machine,
            () => Limit::Budget,
        };
        let within = self.deadlines(situation.now, claims).first().map(|(_, left)| *left);
        // A job that was suspended just now may bring another's time forward; not to this very moment.
        let within = within.map(|within| within.max(self.bound / MARGIN));
        Decided { jobs, budget, squeezed, braked, limit, within }
    }

    /// The time that a job has waited; `None` if it runs.
    pub fn waited(&self, index: usize, now: Duration) -> Option<Duration> {
        self.jobs.get(index)?.suspended_at.map(|since| now.saturating_sub(since))
    }

    /// The time that each waiting job may still wait, by falling waiting time. A job's time ends early
    /// enough that the jobs after it are resumed one by one.
    fn deadlines(&self, now: Duration, claims: &[Option<Claim>]) -> Vec<(usize, Duration)> {
        let there = |index: &usize| claims.get(*index).is_some_and(Option::is_some);
        let there = (0..self.jobs.len()).filter(there);
        let mut waits: Vec<(usize, Duration)> =
            there.filter_map(|index| Some((index, self.waited(index, now)?))).collect();
        waits.sort_by_key(|(_, waited)| std::cmp::Reverse(*waited));
        let bound = self.bound - self.bound / MARGIN;
        let spacing = (bound / u32::try_from(waits.len()).unwrap_or(u32::MAX).max(1)).max(SPACING_MIN);
        let mut after = Duration::MAX;
        for (_, waited) in waits.iter_mut().rev() {
            after = bound.saturating_sub(*waited).min(after.saturating_sub(spacing));
            *waited = after;
        }
        waits
    }

    /// Lowers the number of jobs that run while stalls last, and raises it again, one a turn, when they are
    /// over.
    fn heed_brake(&mut self, situation: &Situation, claims: &[Option<Claim>]) -> bool {
        let braked = situation.stalled > self.brake;
        let present = claims.iter().flatten().count();
        if braked {
            self.brakes += 1;
            self.calm_since = situation.now;
            // Where only others stall, stopping our jobs would not help.
            if self.brakes.is_multiple_of(BRAKES) && situation.waited > self.brake {
                let run = self.jobs.iter().filter(|job| job.present && job.suspended_at.is_none()).count();
                self.slots = run.saturating_sub(1).max(1);
            }
        } else {
            self.brakes = 0;
            if self.slots < present && situation.now.saturating_sub(self.calm_since) >= self.turn {
                self.slots += 1;
                self.calm_since = situation.now;
            }
        }
        if self.slots >= present && !braked {
            self.slots = usize::MAX;
        }
        braked
    }

    /// The jobs, those first that have the first claim to run.
    fn order(&mut self, now: Duration, danger: bool, claims: &[Option<Claim>]) -> Vec<Candidate> {
        let mut order = Vec::with_capacity(claims.len());
        let due = self.deadlines(now, claims);
        let due = |index| due.iter().any(|(at, left)| *at == index && left.is_zero());
        let alone = self.turn.min(self.bound / 2);
        for (index, claim) in claims.iter().enumerate() {
            let memory = &mut self.jobs[index];
            let Some(claim) = claim else {
                *memory = Memory::default();
                continue;
            };
            memory.present = true;
            let held = if claim.reclaimable { Bytes(0) } else { claim.resident };
            let stays =
                if claim.reclaimable && claim.reclaimable_running { Bytes(0) } else { claim.resident };
            let known = claim.worth.unwrap_or(claim.resident).max(stays);
            if memory.suspended_at.is_none() {
                memory.needed = known;
            }
            let fresh = memory.resumed_at.is_some_and(|at| now.saturating_sub(at) < alone);
            if !fresh && memory.suspended_at.is_none() {
                memory.waited_before = Duration::ZERO;
            }
            let since = memory.suspended_at.map_or(Duration::ZERO, |at| now.saturating_sub(at));
            let waited = since + memory.waited_before;
            let turns = waited.as_nanos() / self.turn.as_nanos().max(1);
            order.push(Candidate {
                index,
                need: memory.needed.max(held),
                keep: held,
                // In danger no job is exempt: the next to be suspended is the least urgent, however fresh.
                fresh: fresh && !danger,
                due: due(index),
                rank: u64::from(claim.priority) + u64::try_from(turns).unwrap_or(u64::MAX / 2),
                waited,
                suspended: memory.suspended_at.is_some(),
                resumed_at: memory.resumed_at,
            });
        }
        // Of equals, the running one goes on running; only turns waited change that.
        let key = |job: &Candidate| {
            (job.due, job.fresh && !job.suspended, job.rank, !job.suspended, job.resumed_at, job.waited)
        };
        order.sort_by(|a, b| key(b).cmp(&key(a)).then(a.index.cmp(&b.index)));
        order
    }

    fn admit(&self, budget: Bytes, order: &[Candidate]) -> Vec<usize> {
        let mut used = total(order.iter().map(|job| job.keep));
        let mut admitted = Vec::with_capacity(order.len());
        let mut reserved = false;
        for job in order {
            let more = job.need.0.saturating_sub(job.keep.0);
            let fits = used.0.saturating_add(more) <= budget.0 && admitted.len() < self.slots;
            let passed_over = reserved && job.suspended;
            if admitted.is_empty() || job.due || (fits && !passed_over) {
                used = Bytes(used.0.saturating_add(more));
                admitted.push(job.index);
            } else if job.suspended && job.waited >= self.turn {
                reserved = true;
            }
        }
        admitted
    }

    fn remember(&mut self, now: Duration, order: &[Candidate], running: &[Candidate]) {
        for job in order {
            let memory = &mut self.jobs[job.index];
            match (memory.suspended_at, has(running, job.index)) {
                (Some(_), true) => {
                    memory.waited_before = job.waited;
                    (memory.suspended_at, memory.resumed_at) = (None, Some(now));
                }
                (None, false) => (memory.suspended_at, memory.resumed_at) = (Some(now), None),
                _ => {}
            }
        }
    }
}

/// The reclaimable memory that a running job holds beyond its worth.
fn excess(claims: &[Option<Claim>], job: &Candidate) -> Bytes {
    match claims[job.index] {
        Some(Claim { resident, worth: Some(worth), reclaimable: true, .. }) => {
            Bytes(resident.0.saturating_sub(worth.0))
        }
        _ => Bytes(0),
    }
}

fn has(jobs: &[Candidate], index: usize) -> bool {
    jobs.iter().any(|job| job.index == index)
}

fn total(all: impl Iterator<Item = Bytes>) -> Bytes {
    Bytes(all.fold(0, |sum, bytes| sum.saturating_add(bytes.0)))
}

/// `all` times `part` / `whole`.
fn share(all: Bytes, part: Bytes, whole: Bytes) -> u64 {
    match whole.0 {
        0 => 0,
        whole => (u128::from(all.0) * u128::from(part.0) / u128::from(whole)) as u64,
    }
}

#[cfg(test)]
mod tests;
