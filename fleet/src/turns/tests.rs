//! Tests of the scheduler with a simulated fleet: watches with given costs, on a simulated clock.

use super::*;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

/// A simulated watch.
#[derive(Debug, Clone, Copy)]
struct Watch {
    /// The cost of a check, the cost of a sample, and the samples in a cycle.
    asking: Duration,
    look: Duration,
    looks: u32,
    /// The time between samples, and between cycles.
    window: Duration,
    pause: Duration,
    idle: bool,
}

#[derive(Debug, Default, Clone)]
struct Served {
    looked: u32,
    turns: u32,
    first: Option<Duration>,
    latest_look: Duration,
    expected: Option<Duration>,
    ready: Duration,
}

/// Runs a fleet for `time`, and checks the account's invariant at every step.
fn run(share: f64, watches: &[Watch], time: Duration) -> (Vec<Served>, Duration) {
    let mut turns = Turns::new(share);
    let mut served = vec![Served::default(); watches.len()];
    let estimate = |watch: &Watch| watch.look * watch.looks;
    for (key, watch) in watches.iter().enumerate() {
        turns.join(key as Key, estimate(watch));
    }
    let (mut now, mut spent, mut most) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    while now < time {
        turns.account(now, spent);
        let Some(key) = turns.next() else {
            now += turns.idle_for().unwrap().max(Duration::from_micros(10));
            continue;
        };
        let (watch, own) = (&watches[key as usize], &mut served[key as usize]);
        let (cost, wait, in_cycle);
        if now < own.ready {
            (cost, wait, in_cycle) = (watch.asking, (own.ready - now).min(Duration::from_secs(5)), false);
        } else {
            if let Some(expected) = own.expected {
                own.latest_look = own.latest_look.max(now.saturating_sub(expected));
            }
            own.looked += 1;
            in_cycle = own.looked < watch.looks;
            cost = watch.look;
            if in_cycle {
                wait = watch.window;
                own.expected = Some(now + cost + wait);
            } else {
                (own.looked, own.expected) = (0, None);
                own.turns += 1;
                own.first.get_or_insert(now);
                own.ready = now + watch.pause;
                wait = watch.pause.min(Duration::from_secs(5));
            }
        }
        // Other work also takes time on the processor.
        now += cost;
        spent += cost;
        most = most.max(cost);
        turns.account(now, spent);
        turns.stepped(key, Stepped { wait, in_cycle, idle: watch.idle, cost, estimate: estimate(watch) });
        let bound = turns.depth() + share * now.as_secs_f64() + most.as_secs_f64() + 1e-6;
        assert!(spent.as_secs_f64() <= bound, "{spent:?} at {now:?} of {bound}");
    }
    (served, spent)
}

/// Measured figures of a service that hardly runs, and of a job that always runs.
const IDLE: Watch = Watch {
    asking: Duration::from_micros(70),
    look: Duration::from_micros(600),
    looks: 6,
    window: Duration::from_secs(100),
    pause: Duration::from_secs(20),
    idle: true,
};
const BUSY: Watch = Watch {
    asking: Duration::from_micros(70),
    look: Duration::from_millis(5),
    looks: 5,
    window: Duration::from_millis(400),
    pause: Duration::from_secs(2),
    idle: false,
};

#[test]
fn thirty_busy_jobs_all_have_a_first_turn_within_two_minutes() {
    let (served, _) = run(0.02, &[BUSY; 30], Duration::from_secs(600));
    for own in &served {
        let first = own.first.expect("a turn");
        assert!(first < Duration::from_secs(120), "{first:?}");
    }
    // Waiting groups do not delay the samples of running cycles.
    let latest = served.iter().map(|own| own.latest_look).max().unwrap();
    assert!(latest < 200 * MS, "{latest:?}");
}

#[test]
fn equal_jobs_get_equal_turns() {
    let (served, _) = run(0.02, &[BUSY; 60], Duration::from_secs(3600));
    let turns = || served.iter().map(|own| own.turns);
    assert!(turns().max().unwrap() <= turns().min().unwrap() + 2, "{:?}", turns().collect::<Vec<_>>());
    assert!(turns().min().unwrap() >= 10);
}

#[test]
fn two_thousand_idle_groups_are_all_seen_in_an_hour_and_a_half() {
    let (served, _) = run(0.02, &[IDLE; 2000], Duration::from_secs(5400));
    let unseen = served.iter().filter(|own| own.turns == 0).count();
    assert_eq!(unseen, 0);
}

#[test]
fn group_that_leaves_within_a_cycle_gets_no_step() {
    let mut turns = Turns::new(0.02);
    turns.join(1, MS);
    turns.join(2, MS);
    turns.account(MS, Duration::ZERO);
    assert_eq!(turns.next(), Some(1));
    turns.stepped(
        1,
        Stepped { wait: Duration::ZERO, in_cycle: true, idle: false, cost: MS, estimate: 5 * MS },
    );
    assert_eq!(turns.next(), Some(1), "its cycle is under way");
    turns.leave(1);
    assert_eq!((turns.next(), turns.at_once()), (Some(2), [0, 1]));
    turns.leave(2);
    turns.leave(2);
    turns.stepped(2, Stepped { wait: MS, in_cycle: false, idle: false, cost: MS, estimate: MS });
    assert_eq!((turns.next(), turns.idle_for()), (None, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Any watches stay within the bound, and none starves.
    #[test]
    fn any_fleet_stays_within_its_share(
        share in 0.005..0.2f64,
        kinds in prop::collection::vec((20..200u64, 100..20_000u64, 1..8u32, 1..60_000u64, 100..60_000u64, any::<bool>()), 1..40),
    ) {
        let us = Duration::from_micros;
        let watches: Vec<Watch> = kinds
            .iter()
            .map(|&(asking, look, looks, window, pause, idle)| Watch {
                asking: us(asking),
                look: us(look),
                looks,
                window: us(window * 1000),
                pause: us(pause * 1000),
                idle,
            })
            .collect();
        let (served, _) = run(share, &watches, Duration::from_secs(3600));
        prop_assert!(served.iter().all(|own| own.turns > 0), "{served:?}");
    }
}
