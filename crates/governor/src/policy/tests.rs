//! Tests of the policy's rules: cases written by hand, and random ones over many periods.

use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const TURN: Duration = Duration::from_secs(20);
/// A bound that plays no part.
const NEVER: Duration = Duration::from_secs(1 << 40);

fn claim(priority: u8, resident: u64, worth: u64) -> Option<Claim> {
    let [resident, worth] = [resident, worth].map(|mib| Bytes(mib * MIB));
    Some(Claim { priority, resident, worth: Some(worth), reclaimable: true, reclaimable_running: true })
}

fn fixed(priority: u8, resident: u64) -> Option<Claim> {
    Some(Claim {
        worth: None,
        reclaimable: false,
        reclaimable_running: false,
        ..claim(priority, resident, 0)?
    })
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
    let mut policy = Policy::new(0.1, TURN, NEVER);
    let decided = policy.decide(&at(0, 1000), &[claim(5, 300, 100), None, claim(5, 200, 100)]);
    assert!(!decided.squeezed && decided.limit == Limit::None);
    let job = decided.jobs[0].unwrap();
    assert_eq!((job.runs, job.take, job.target), (true, Bytes(0), Bytes(500 * MIB)));
    assert_eq!(decided.jobs[1], None);
}

#[test]
fn squeezed_each_gives_its_part_of_what_is_beyond_its_knee() {
    let mut policy = Policy::new(0.1, TURN, NEVER);
    let decided = policy.decide(&at(0, 400), &[claim(5, 300, 200), claim(5, 130, 100), claim(5, 20, 20)]);
    let take: Vec<u64> = decided.jobs.iter().map(|job| job.unwrap().take.0 / MIB).collect();
    assert!(decided.squeezed && take[2] == 0, "{take:?}");
    assert!((38..=39).contains(&take[0]) && (11..=12).contains(&take[1]), "{take:?}");
}

#[test]
fn the_least_urgent_is_suspended_whole_and_only_if_the_overload_lasts() {
    let mut policy = Policy::new(0.1, TURN, NEVER);
    let claims = [claim(5, 300, 300), claim(2, 300, 300), claim(7, 300, 300)];
    assert_eq!(running(&policy.decide(&at(0, 700), &claims)), [0, 1, 2]);
    let decided = policy.decide(&at(1, 700), &claims);
    assert_eq!((running(&decided), decided.limit), (vec![0, 2], Limit::Budget));
    assert_eq!(decided.jobs[1].unwrap().take, BATCH_MAX, "a suspended job's memory is taken in batches");
    // Memory that cannot be taken stays where it is: the job that may not grow is suspended.
    let mut policy = Policy::new(0.1, TURN, NEVER);
    let claims = [fixed(5, 300), fixed(2, 300)];
    policy.decide(&at(0, 500), &claims);
    let decided = policy.decide(&at(1, 500), &claims);
    assert_eq!((running(&decided), decided.jobs[1].unwrap().take), (vec![0], Bytes(0)));
}

#[test]
fn what_gives_nothing_while_it_runs_is_suspended_and_emptied() {
    let mut policy = Policy::new(0.1, TURN, NEVER);
    let grower = Claim { reclaimable_running: false, ..claim(2, 900, 10).unwrap() };
    let claims = [Some(grower), claim(5, 300, 300)];
    policy.decide(&at(0, 700), &claims);
    let decided = policy.decide(&at(1, 700), &claims);
    assert_eq!((running(&decided), decided.jobs[0].unwrap().take), (vec![1], BATCH_MAX));
}

#[test]
fn the_machines_own_need_comes_before_the_budget_and_at_once() {
    let mut policy = Policy::new(0.1, TURN, NEVER);
    let short = Situation { available: Bytes(10 * MIB), reserve: Bytes(100 * MIB), ..at(0, 10_000) };
    let decided = policy.decide(&short, &[fixed(5, 300), fixed(1, 300)]);
    assert_eq!((running(&decided), decided.limit), (vec![0], Limit::Machine));
}

#[test]
fn the_brake_stops_taking_then_running_and_lets_go_one_a_turn() {
    let mut policy = Policy::new(0.1, TURN, NEVER);
    let claims = [claim(5, 300, 100), claim(4, 300, 100), claim(3, 300, 100)];
    let stalled = |second| Situation { stalled: 0.5, waited: 0.5, ..at(second, 800) };
    let decided = policy.decide(&stalled(0), &claims);
    assert!(decided.braked && decided.squeezed);
    assert!(decided.jobs.iter().all(|job| job.unwrap().take == Bytes(0)));
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
    let mut policy = Policy::new(0.1, TURN, NEVER);
    for second in 0..60 {
        let stalled = Situation { stalled: 0.9, ..at(second, 800) };
        let decided = policy.decide(&stalled, &[claim(5, 500, 100), claim(4, 500, 100)]);
        assert_eq!((running(&decided), decided.jobs[0].unwrap().take), (vec![0, 1], Bytes(0)));
    }
}

#[test]
fn equals_take_turns() {
    let mut policy = Policy::new(0.1, TURN, NEVER);
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
        let mut policy = Policy::new(0.1, TURN, NEVER);
        let mut waiting = vec![0u64; jobs.len()];
        let bound = (12 + 2 * jobs.len() as u64) * TURN.as_secs();
        let mut paged: Vec<u64> = jobs.iter().map(|job| job.1).collect();
        let mut grown = vec![0u64; jobs.len()];
        for second in 0..1200 {
            let claims: Vec<Option<Claim>> = jobs.iter().enumerate().map(|(index, job)| {
                let worth = Bytes((job.2 + grown[index] % 100) * MIB);
                Some(Claim { priority: job.0, resident: Bytes(paged[index] * MIB), worth: Some(worth), reclaimable: job.3, reclaimable_running: job.3 })
            }).collect();
            let decided = policy.decide(&at(second, budget), &claims);
            let now = running(&decided);
            prop_assert!(!now.is_empty());
            let (mut needed, mut kept) = (0, 0);
            for (index, claim) in claims.iter().flatten().enumerate() {
                let decision = decided.jobs[index].unwrap();
                prop_assert!(decision.take.0 <= claim.resident.0.max(1) && (claim.reclaimable || decision.take.0 == 0));
                let held = if claim.reclaimable { 0 } else { claim.resident.0 };
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

#[test]
fn equals_that_wait_come_one_by_one_and_evenly() {
    // One of four fits: each waits three quarters of the time, and no two come together.
    let mut policy = Policy::new(0.1, TURN, Duration::from_secs(4));
    let claims = [claim(5, 300, 300); 4];
    let mut seconds = [0.0; 4];
    let (mut now, mut most) = (Duration::ZERO, 0);
    while now < Duration::from_secs(400) {
        let decided = policy.decide(&Situation { now, ..at(0, 400) }, &claims);
        let runs = running(&decided);
        let step = decided.within.unwrap_or(Duration::MAX).min(Duration::from_secs(1));
        runs.iter().for_each(|index| seconds[*index] += step.as_secs_f64());
        most = if now < Duration::from_secs(10) { 0 } else { most.max(runs.len()) };
        now += step;
    }
    assert_eq!(most, 1);
    assert!(seconds.iter().all(|seconds| (95.0..105.0).contains(seconds)), "{seconds:?}");
}

proptest! {
    #[test]
    fn nobody_waits_longer_than_the_bound(
        jobs in prop::collection::vec((0u8..10, 1u64..500, 1u64..500, any::<bool>()), 1..24),
        budget in 50u64..1500,
        bound in 500u64..30_000,
        period in 100u64..3000,
        stalled in any::<bool>(),
        short in any::<bool>(),
    ) {
        let (bound, period) = (Duration::from_millis(bound), Duration::from_millis(period));
        let mut policy = Policy::new(0.1, TURN, bound);
        let claims: Vec<_> = jobs.iter().map(|job| {
            let (resident, worth) = (Bytes(job.1 * MIB), Some(Bytes(job.2 * MIB)));
            Some(Claim { priority: job.0, resident, worth, reclaimable: job.3, reclaimable_running: job.3 })
        }).collect();
        let mut ran_at = vec![Duration::ZERO; jobs.len()];
        let mut now = Duration::ZERO;
        for decision in 0..1000 {
            let stalled = if stalled && decision % 100 < 50 { 0.5 } else { 0.0 };
            let available = if short && decision % 70 < 20 { Bytes(0) } else { Bytes(1 << 40) };
            let situation = Situation { now, stalled, waited: stalled, available, reserve: Bytes(MIB), ..at(0, budget) };
            let decided = policy.decide(&situation, &claims);
            for (index, ran) in ran_at.iter_mut().enumerate() {
                prop_assert!(now - *ran <= bound, "job {index} waited {:?} of {bound:?}", now - *ran);
                if decided.jobs[index].unwrap().runs {
                    *ran = now;
                }
            }
            let step = decided.within.unwrap_or(Duration::MAX).min(period);
            prop_assert!(!step.is_zero(), "time passes");
            // Until the next decision, those that run have run.
            now += step;
            for index in running(&decided) {
                ran_at[index] = now;
            }
        }
    }
}
