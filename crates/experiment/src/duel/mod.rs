//! A duel: times two operations, A and B, against each other in one process, in rounds of random order.
//!
//! ```text
//! round   1: B A A'   2: A' B A   3: A A' B   …        each arm once per round, in a random order
//!            └┬┘ └┬┘
//!             │   └── A against A', the same operation: the control, which must show no difference
//!             └────── A against B: the ratio
//! ```
//!
//! Slow influences (clock frequency, other load on the machine) affect all three arms (A, B, and A again as
//! A') of a round alike and leave their ratios unchanged. The effect of an arm on the next arm falls on all
//! arms equally often. The remaining difference between A and A' is noise, and is printed beside every ratio.
//!
//! All arms are called at the same instruction, and A and A' through the same pointer. Otherwise the compiler
//! would make two copies of A, and the difference between their addresses would be measured.
//!
//! Between the two clock readings of a timing, only the arm runs; between two arms, a few stores to memory
//! prepared for them. Page faults and context switches are not counted: a system call beside each arm would
//! disturb the measurement, above all of operations that allocate.
//!
//! Source: this project's measurements: operations interleaved at random and compared in pairs give fifty
//! times more repeatable results than operations timed in sequence. Bates 1999, "Reliable Benchmarking with
//! Limbo on Inferno", times one operation at a time.

mod bout;

pub use bout::Bout;

use crate::ArmOrder;
use crate::arms;
use std::time::Duration;
use vellum_measure::{Base, CompareError, Comparison, Observation, Options, Series};
use vellum_timing::bench::{Batching, BenchError};
use vellum_timing::clock::{Anchor, Clock, ClockKind};

/// The most rounds kept.
pub const ROUNDS_MAX: usize = 1 << 22;
/// The fewest rounds of a comparison.
pub const ROUNDS_MIN: usize = 10;

/// Options of a duel.
#[derive(Clone, Debug)]
pub struct DuelOptions {
    /// The clock; if `None`, the [best](Clock::best) one.
    pub clock: Option<ClockKind>,
    /// The time of the duel. It takes longer if [`ROUNDS_MIN`] rounds take longer.
    pub time: Duration,
    /// The most rounds, moved into the range from [`ROUNDS_MIN`] to [`ROUNDS_MAX`].
    pub rounds: usize,
    /// The time of the warm-up, whose rounds are dropped.
    pub warm_up: Duration,
    /// The treatment of operations too short for the clock.
    pub batching: Batching,
    /// The order of the arms.
    pub order: ArmOrder,
    /// The seed of random orders.
    pub seed: u64,
}

impl Default for DuelOptions {
    fn default() -> Self {
        DuelOptions {
            clock: None,
            time: Duration::from_secs(1),
            rounds: ROUNDS_MAX,
            warm_up: Duration::from_millis(50),
            batching: Batching::Auto,
            order: ArmOrder::Random,
            seed: 1,
        }
    }
}

/// A round as stored during the measurement.
#[derive(Clone, Copy, Debug)]
struct Raw {
    /// The first stamp of each arm: A, A', B.
    first: [u64; 3],
    ticks: [u64; 3],
}

impl Raw {
    /// Not zero, because memory with zeros may not be resident yet.
    const EMPTY: Raw = Raw { first: [1; 3], ticks: [1; 3] };
}

/// The results of a duel: every round, in order.
#[derive(Clone, Debug)]
pub struct Duel {
    clock: Clock,
    base: Base,
    /// Operations in each timing.
    batch: u64,
    order: ArmOrder,
    rounds: Vec<Raw>,
    began: Anchor,
    ended: Anchor,
}

/// Runs two operations by turns; the first operation is two of the three arms, A and A'.
///
/// # Errors
/// If no clock is available, or an operation is too short for it and must not be batched.
pub fn duel_between(operations: [&mut dyn FnMut(); 2], options: &DuelOptions) -> Result<Duel, BenchError> {
    Ok(Bout::open(operations, options)?.measure(options.time))
}

impl Duel {
    /// The number of rounds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rounds.len()
    }

    /// True if there are no rounds: a signal came before the first was complete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Operations in each timing.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// The times of each round per operation, in nanoseconds, base subtracted: A, A', B.
    pub fn rounds(&self) -> impl Iterator<Item = [f64; 3]> {
        self.rounds.iter().map(|raw| self.net(raw))
    }

    /// The times of one round.
    #[must_use]
    pub fn round(&self, round: usize) -> Option<[f64; 3]> {
        self.rounds.get(round).map(|raw| self.net(raw))
    }

    fn net(&self, raw: &Raw) -> [f64; 3] {
        raw.ticks.map(|ticks| self.base.subtract(self.clock.nanoseconds(ticks)) / self.batch as f64)
    }

    /// Compares B with A, with A' against A as the control. The clock's step is filled in.
    ///
    /// # Errors
    /// Those of [`Comparison::of`].
    pub fn compare(&self, options: &Options) -> Result<Comparison, CompareError> {
        arms::compare(self.rounds(), self.step_ns(), options)
    }

    /// The clock's step divided by the batch: the resolution of an operation's time, in nanoseconds.
    #[must_use]
    pub fn step_ns(&self) -> f64 {
        self.clock.step_ns() / self.batch as f64
    }

    /// The observations of one arm as a series; `arm` is a place in [`ARMS`](crate::ARMS).
    #[must_use]
    pub fn series(&self, name: &str, arm: usize) -> Series {
        let observation = |raw: &Raw| Observation {
            start_ns: self.began.place(&self.ended, &self.clock, raw.first[arm]),
            wall_ns: self.clock.nanoseconds(raw.ticks[arm]),
            ..Observation::default()
        };
        Series {
            batch: self.batch,
            base: Some(self.base.clone()),
            observations: self.rounds.iter().map(observation).collect(),
            ..arms::series(name, arm, self.order.name(), &self.clock)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::hint::black_box;
    use vellum_measure::Direction;

    fn quick(order: ArmOrder) -> DuelOptions {
        DuelOptions {
            clock: Some(ClockKind::Monotonic),
            time: Duration::from_millis(20),
            rounds: 200,
            warm_up: Duration::from_millis(1),
            order,
            ..DuelOptions::default()
        }
    }

    fn work(turns: u64) {
        black_box((0..black_box(turns)).fold(1, |sum, i| black_box(sum ^ i.wrapping_mul(sum))));
    }

    fn duel_of(a: u64, b: u64) -> Duel {
        duel_between([&mut || work(a), &mut || work(b)], &quick(ArmOrder::Random)).unwrap()
    }

    #[test]
    fn every_round_runs_every_arm_once_in_the_drawn_order() {
        for order in [ArmOrder::Random, ArmOrder::Fixed, ArmOrder::Mirrored] {
            let calls = RefCell::new(Vec::new());
            let arm = |name| {
                let calls = &calls;
                move || {
                    calls.borrow_mut().push(name);
                    work(2000);
                }
            };
            let duel = duel_between([&mut arm('a'), &mut arm('b')], &quick(order)).unwrap();
            assert!((ROUNDS_MIN..=200).contains(&duel.len()) && duel.batch() == 1);
            let calls = calls.into_inner();
            // Earlier calls were gauging and warm-up.
            let last = &calls[calls.len() - 3 * duel.len()..];
            let (mut rng, mut arms) = (vellum_measure::Rng::new(1), [0; 3]);
            for (round, (called, raw)) in last.chunks(3).zip(&duel.rounds).enumerate() {
                order.draw(round, &mut rng, &mut arms);
                let said: Vec<char> = arms.iter().map(|arm| if *arm == 2 { 'b' } else { 'a' }).collect();
                assert_eq!(called, said, "{order:?}");
                assert!(arms.is_sorted_by_key(|arm| raw.first[*arm]), "{order:?}");
            }
        }
    }

    #[test]
    fn a_tenfold_difference_is_found() {
        let duel = duel_of(1000, 10_000);
        let found = duel.compare(&Options::default()).unwrap();
        assert!(found.headline.ratio.low > 3.0 && found.direction() == Direction::More, "{found:?}");
        let series = duel.series("duel", 2);
        assert_eq!((series.label("arm"), series.walls().len()), (Some("B"), duel.len()));
        assert!(series.starts().unwrap().windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_bout_ends_by_time_or_space() {
        let (mut a, mut b) = (|| work(500), || work(500));
        let options = DuelOptions { time: Duration::from_secs(60), ..quick(ArmOrder::Random) };
        let mut rounds = |time| Bout::open([&mut a, &mut b], &options).unwrap().measure(time).len();
        assert_eq!((rounds(Duration::ZERO), rounds(options.time)), (ROUNDS_MIN, 200));
    }

    #[test]
    fn short_operations_are_batched_or_refused() {
        let mut number = 0u64;
        let mut short = || number = black_box(number) + 1;
        let mut other = || assert!(black_box(1u64) == 1);
        let options = DuelOptions { batching: Batching::Refuse, ..quick(ArmOrder::Random) };
        let refused = duel_between([&mut short, &mut other], &options);
        assert!(matches!(refused, Err(BenchError::TooShort(_))));
        let duel = duel_between([&mut short, &mut other], &quick(ArmOrder::Random)).unwrap();
        assert!(duel.batch() >= 2);
    }
}
