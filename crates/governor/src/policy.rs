//! Which jobs run, and with how much memory: the decision of each period, a pure function of claims,
//! situation and earlier decisions.
//!
//! ```text
//! claims (need · kept) ─▶ order ─▶ admit while it fits ─┬─▶ runs: target = need + its share of the rest
//!   budget ─ machine's     urgency + turns waited       │         take = its part of the excess, if squeezed
//!   brake  ─ slots                                      └─▶ suspended: everything that can be taken from it
//! ```
//!
//! # Rules
//!
//! 1. A job *needs* its worth, z at its knee, or what it holds where the worth is not known. If nothing can
//!    be taken from it (no privilege, no swap), it needs at least what it holds, and *keeps* that while
//!    suspended. If nothing can be taken while it runs, it needs what it holds, too, but keeps nothing while
//!    suspended.
//! 2. Nothing is taken from any job while all fit: windows beyond the knee are wasted only when somebody else
//!    needs the memory.
//! 3. Where the needs do not fit, jobs are suspended whole, the least urgent first: some jobs at their knee
//!    get more done than all below it.
//! 4. A suspended job's urgency rises by one with each turn that it waits. Resumed, it is left alone for a
//!    turn. While one waits in vain, nobody else is resumed before it. So each runs again, however little
//!    urgent and however large.
//! 5. The first in order always runs, whatever it needs: a job is never stopped for being too large if it is
//!    alone.
//! 6. Where tasks stall on memory for more than the brake allows, nothing is taken; if that lasts, and our
//!    own jobs wait for faults as much, one job fewer runs.
//!
//! Invariant: what the running jobs need fits in the budget, or one job runs alone, or the overload began at
//! the last decision.
//!
//! Source: Nishigaki, section 5, for windows of each job's own and the degree of multiprogramming that
//! follows; load control by urgency and turns, the brake and the machine's own need are ours.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use vellum_process::Bytes;

/// The most that is taken from one job in one period.
pub const BATCH_MAX: Bytes = Bytes(64 << 20);
/// For how many decisions an overload must last before a job is suspended for it.
pub const OVERLOADS: u32 = 2;
/// For how many decisions the brake must hold before one job fewer runs.
pub const BRAKES: u32 = 5;

/// What a job asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// How urgent it is; more is more.
    pub priority: u8,
    /// What it holds.
    pub resident: Bytes,
    /// What it is worth: z at its knee, if that is known.
    pub worth: Option<Bytes>,
    /// Whether memory can be taken from it once it is suspended.
    pub yields: bool,
    /// Whether what exceeds its worth can be taken while it runs.
    pub gives: bool,
}

/// What there is for all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation {
    /// Time since the governor began.
    pub now: Duration,
    /// What all jobs may have together.
    pub budget: Bytes,
    /// What the machine could still give.
    pub available: Bytes,
    /// What must be left of that.
    pub reserve: Bytes,
    /// The part of time that tasks stalled on memory since the last decision; 0 where that is not known.
    pub stalled: f64,
    /// The part of time that our own jobs waited for faults since then, by S and their number.
    pub waited: f64,
}

/// The decision for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Whether it runs.
    pub runs: bool,
    /// What it may have.
    pub target: Bytes,
    /// What is to be taken from it in this period.
    pub take: Bytes,
}

/// Why less can run than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Nothing: all fit.
    #[default]
    None,
    /// The budget.
    Budget,
    /// What the machine has left.
    Machine,
    /// Stalls on memory.
    Brake,
}

impl Limit {
    /// In words.
    #[must_use]
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
    /// What the budget comes to, with what the machine has.
    pub budget: Bytes,
    /// Whether memory is short: more is held, or needed, than the budget.
    pub squeezed: bool,
    /// Whether stalls keep anything from being taken.
    pub braked: bool,
    /// What limits the number of jobs that run.
    pub limit: Limit,
}

/// The policy: since when each job waits, and the number of slots.
#[derive(Debug, Clone)]
pub struct Policy {
    brake: f64,
    turn: Duration,
    jobs: Vec<Memory>,
    overloads: u32,
    brakes: u32,
    /// The most jobs that may run; lowered by the brake.
    slots: usize,
    /// When the brake held last, or a slot was given back.
    calm_since: Duration,
}

/// A job's memory between decisions.
#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    present: bool,
    suspended_at: Option<Duration>,
    resumed_at: Option<Duration>,
    /// Its wait before it was resumed: kept until it has run for a turn.
    waited_before: Duration,
    /// What it needed when it ran last.
    needed: Bytes,
}

/// A job in the order of admission.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    index: usize,
    need: Bytes,
    keep: Bytes,
    /// Resumed less than a turn ago.
    fresh: bool,
    rank: u64,
    waited: Duration,
    suspended: bool,
}

impl Policy {
    /// A policy under which nobody waits yet.
    #[must_use]
    pub fn new(brake: f64, turn: Duration) -> Policy {
        let jobs = Vec::new();
        Policy { brake, turn, jobs, overloads: 0, brakes: 0, slots: usize::MAX, calm_since: Duration::ZERO }
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
                Decision { runs: true, target, take: Bytes(wanted).min(BATCH_MAX) }
            } else {
                let all = if claim.yields { claim.resident.min(BATCH_MAX) } else { Bytes(0) };
                Decision { runs: false, target: Bytes(0), take: all }
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
        Decided { jobs, budget, squeezed, braked, limit }
    }

    /// How long a job has waited; `None` if it runs.
    #[must_use]
    pub fn waited(&self, index: usize, now: Duration) -> Option<Duration> {
        self.jobs.get(index)?.suspended_at.map(|since| now.saturating_sub(since))
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
        for (index, claim) in claims.iter().enumerate() {
            let memory = &mut self.jobs[index];
            let Some(claim) = claim else {
                *memory = Memory::default();
                continue;
            };
            memory.present = true;
            let held = if claim.yields { Bytes(0) } else { claim.resident };
            let stays = if claim.yields && claim.gives { Bytes(0) } else { claim.resident };
            let known = claim.worth.unwrap_or(claim.resident).max(stays);
            if memory.suspended_at.is_none() {
                memory.needed = known;
            }
            let fresh = memory.resumed_at.is_some_and(|at| now.saturating_sub(at) < self.turn);
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
                rank: u64::from(claim.priority) + u64::try_from(turns).unwrap_or(u64::MAX / 2),
                waited,
                suspended: memory.suspended_at.is_some(),
            });
        }
        // Of equals, the running one goes on running; only turns waited change that.
        let key = |job: &Candidate| (job.fresh && !job.suspended, job.rank, !job.suspended, job.waited);
        order.sort_by(|a, b| key(b).cmp(&key(a)).then(a.index.cmp(&b.index)));
        order
    }

    /// Who runs, of all in `order`.
    fn admit(&self, budget: Bytes, order: &[Candidate]) -> Vec<usize> {
        let mut used = total(order.iter().map(|job| job.keep));
        let mut admitted = Vec::with_capacity(order.len());
        let mut reserved = false;
        for job in order {
            let more = job.need.0.saturating_sub(job.keep.0);
            let fits = used.0.saturating_add(more) <= budget.0 && admitted.len() < self.slots;
            let passed_over = reserved && job.suspended;
            if admitted.is_empty() || (fits && !passed_over) {
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

/// What a running job holds beyond its worth and can be taken.
fn excess(claims: &[Option<Claim>], job: &Candidate) -> Bytes {
    match claims[job.index] {
        Some(Claim { resident, worth: Some(worth), yields: true, .. }) => {
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const TURN: Duration = Duration::from_secs(20);

    fn claim(priority: u8, resident: u64, worth: u64) -> Option<Claim> {
        Some(Claim {
            priority,
            resident: Bytes(resident * MIB),
            worth: Some(Bytes(worth * MIB)),
            yields: true,
            gives: true,
        })
    }

    fn fixed(priority: u8, resident: u64) -> Option<Claim> {
        Some(Claim { priority, resident: Bytes(resident * MIB), worth: None, yields: false, gives: false })
    }

    fn at(seconds: u64, budget: u64) -> Situation {
        Situation {
            now: Duration::from_secs(seconds),
            budget: Bytes(budget * MIB),
            available: Bytes(1 << 40),
            reserve: Bytes(0),
            stalled: 0.0,
            waited: 0.0,
        }
    }

    fn running(decided: &Decided) -> Vec<usize> {
        let runs = |job: &Option<Decision>| job.is_some_and(|job| job.runs);
        decided.jobs.iter().enumerate().filter(|(_, job)| runs(job)).map(|(index, _)| index).collect()
    }

    #[test]
    fn nothing_is_taken_while_all_fit_and_what_is_over_is_shared() {
        let mut policy = Policy::new(0.1, TURN);
        let decided = policy.decide(&at(0, 1000), &[claim(5, 300, 100), None, claim(5, 200, 100)]);
        assert!(!decided.squeezed && decided.limit == Limit::None);
        let job = decided.jobs[0].unwrap();
        assert_eq!((job.runs, job.take, job.target), (true, Bytes(0), Bytes(500 * MIB)));
        assert_eq!(decided.jobs[1], None);
    }

    #[test]
    fn squeezed_each_gives_its_part_of_what_is_beyond_its_knee() {
        let mut policy = Policy::new(0.1, TURN);
        let decided = policy.decide(&at(0, 400), &[claim(5, 300, 200), claim(5, 130, 100), claim(5, 20, 20)]);
        let take: Vec<u64> = decided.jobs.iter().map(|job| job.unwrap().take.0 / MIB).collect();
        assert!(decided.squeezed && take[2] == 0, "{take:?}");
        assert!((38..=39).contains(&take[0]) && (11..=12).contains(&take[1]), "{take:?}");
    }

    #[test]
    fn the_least_urgent_is_suspended_whole_and_only_if_the_overload_lasts() {
        let mut policy = Policy::new(0.1, TURN);
        let claims = [claim(5, 300, 300), claim(2, 300, 300), claim(7, 300, 300)];
        assert_eq!(running(&policy.decide(&at(0, 700), &claims)), [0, 1, 2]);
        let decided = policy.decide(&at(1, 700), &claims);
        assert_eq!((running(&decided), decided.limit), (vec![0, 2], Limit::Budget));
        assert_eq!(decided.jobs[1].unwrap().take, BATCH_MAX, "a suspended job's memory is taken in batches");
        // Memory that cannot be taken stays where it is: the job that may not grow is suspended.
        let mut policy = Policy::new(0.1, TURN);
        let claims = [fixed(5, 300), fixed(2, 300)];
        policy.decide(&at(0, 500), &claims);
        let decided = policy.decide(&at(1, 500), &claims);
        assert_eq!((running(&decided), decided.jobs[1].unwrap().take), (vec![0], Bytes(0)));
    }

    #[test]
    fn what_gives_nothing_while_it_runs_is_suspended_and_emptied() {
        let mut policy = Policy::new(0.1, TURN);
        let grower = Claim { gives: false, ..claim(2, 900, 10).unwrap() };
        let claims = [Some(grower), claim(5, 300, 300)];
        policy.decide(&at(0, 700), &claims);
        let decided = policy.decide(&at(1, 700), &claims);
        assert_eq!((running(&decided), decided.jobs[0].unwrap().take), (vec![1], BATCH_MAX));
    }

    #[test]
    fn the_machines_own_need_comes_before_the_budget_and_at_once() {
        let mut policy = Policy::new(0.1, TURN);
        let short = Situation { available: Bytes(10 * MIB), reserve: Bytes(100 * MIB), ..at(0, 10_000) };
        let decided = policy.decide(&short, &[fixed(5, 300), fixed(1, 300)]);
        assert_eq!((running(&decided), decided.limit), (vec![0], Limit::Machine));
    }

    #[test]
    fn one_job_too_large_alone_runs() {
        let mut policy = Policy::new(0.1, TURN);
        for second in 0..10 {
            assert_eq!(running(&policy.decide(&at(second, 100), &[fixed(0, 300)])), [0]);
        }
    }

    #[test]
    fn the_brake_stops_taking_then_running_and_lets_go_one_a_turn() {
        let mut policy = Policy::new(0.1, TURN);
        let claims = [claim(5, 300, 100), claim(4, 300, 100), claim(3, 300, 100)];
        let stalled = |second| Situation { stalled: 0.5, waited: 0.5, ..at(second, 800) };
        let decided = policy.decide(&stalled(0), &claims);
        assert!(
            decided.braked
                && decided.squeezed
                && decided.jobs.iter().all(|job| job.unwrap().take == Bytes(0))
        );
        for second in 1..u64::from(BRAKES) + 2 {
            policy.decide(&stalled(second), &claims);
        }
        assert_eq!(running(&policy.decide(&stalled(8), &claims)), [0, 1]);
        // Calm for a turn: all again.
        for second in 9..40 {
            policy.decide(&at(second, 800), &claims);
        }
        assert_eq!(running(&policy.decide(&at(40, 800), &claims)), [0, 1, 2]);
    }

    #[test]
    fn stalls_of_others_stop_the_taking_and_no_job() {
        let mut policy = Policy::new(0.1, TURN);
        for second in 0..60 {
            let decided = policy.decide(
                &Situation { stalled: 0.9, ..at(second, 800) },
                &[claim(5, 500, 100), claim(4, 500, 100)],
            );
            assert_eq!((running(&decided), decided.jobs[0].unwrap().take), (vec![0, 1], Bytes(0)));
        }
    }

    #[test]
    fn equals_take_turns() {
        let mut policy = Policy::new(0.1, TURN);
        let claims = [claim(5, 300, 300), claim(5, 300, 300)];
        let mut seconds = [0u64; 2];
        let mut changes = 0;
        let mut last = vec![];
        for second in 0..400 {
            let now = running(&policy.decide(&at(second, 400), &claims));
            now.iter().for_each(|index| seconds[*index] += 1);
            changes += u32::from(now != last);
            last = now;
        }
        assert!(seconds[0].abs_diff(seconds[1]) <= 42, "{seconds:?}");
        assert!(changes <= 22, "{changes} changes are no turns of {TURN:?}");
    }

    proptest! {
        #[test]
        fn nobody_starves_and_the_budget_is_kept(
            jobs in prop::collection::vec((0u8..10, 1u64..500, 1u64..500, any::<bool>(), 0u64..5), 1..8),
            budget in 50u64..1500,
        ) {
            let mut policy = Policy::new(0.1, TURN);
            let mut waiting = vec![0u64; jobs.len()];
            let bound = (12 + 2 * jobs.len() as u64) * TURN.as_secs();
            let mut paged: Vec<u64> = jobs.iter().map(|job| job.1).collect();
            let mut grown = vec![0u64; jobs.len()];
            for second in 0..1200 {
                let claims: Vec<Option<Claim>> = jobs.iter().enumerate().map(|(index, job)| {
                    let worth = Bytes((job.2 + grown[index] % 100) * MIB);
                    Some(Claim { priority: job.0, resident: Bytes(paged[index] * MIB), worth: Some(worth), yields: job.3, gives: job.3 })
                }).collect();
                let decided = policy.decide(&at(second, budget), &claims);
                let now = running(&decided);
                prop_assert!(!now.is_empty());
                let (mut needed, mut kept) = (0, 0);
                for (index, claim) in claims.iter().flatten().enumerate() {
                    let decision = decided.jobs[index].unwrap();
                    prop_assert!(decision.take.0 <= claim.resident.0.max(1) && (claim.yields || decision.take.0 == 0));
                    let held = if claim.yields { 0 } else { claim.resident.0 };
                    if decision.runs {
                        needed += claim.worth.unwrap().0.max(held);
                        waiting[index] = 0;
                        paged[index] = jobs[index].1;
                        // A job that nothing can be taken from keeps its memory; one that grows does so while
                        // it runs.
                        grown[index] += jobs[index].4;
                    } else {
                        kept += held;
                        waiting[index] += 1;
                        paged[index] -= decision.take.0 / MIB;
                    }
                    prop_assert!(waiting[index] <= bound, "job {index} waited {} s", waiting[index]);
                }
                let fits = needed + kept <= budget * MIB;
                prop_assert!(fits || now.len() == 1 || second < 2 || policy.overloads < OVERLOADS,
                    "second {second}: {needed} + {kept} of {}", budget * MIB);
            }
        }
    }
}
