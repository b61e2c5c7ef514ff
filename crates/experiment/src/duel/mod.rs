//! A duel: two operations timed against each other in one process, by turns in random order.
//!
//! ```text
//! round   1: B A A'   2: A' B A   3: A A' B   …        three arms, each once a round, in a random order
//!            └┬┘ └┬┘
//!             │   └── A against A', the same operation: the control, which must show no difference
//!             └────── A against B: the ratio
//! ```
//!
//! Influences slower than a round (frequency, neighbours, the speed of the machine) affect all three arms
//! alike and leave their ratios unchanged. Effects of one arm on the next fall on each arm equally often. The
//! remaining difference between A and A' is noise, and is printed beside every ratio.
//!
//! All arms are called at one place of the code, A and A' through the same pointer. Otherwise the compiler
//! would make two copies of A, and the difference between their addresses would be measured.
//!
//! Between two stamps lies only the arm's call; between two arms, a few stores into prepared memory. Faults
//! and switches are counted once a [block](Block), not once an arm: a system call beside each arm would
//! disturb the measurement, above all of operations that allocate.
//!
//! Source: this project's measurements (random interleaving in pairs repeats fifty times better than any
//! sequence). Bates times one operation at a time.

mod bout;

pub use bout::Bout;

use crate::ArmOrder;
use crate::arms;
use std::hint::black_box;
use std::time::Duration;
use vellum_measure::{Base, CompareError, Comparison, Observation, Options, Series};
use vellum_timing::bench::{Batching, BenchError};
use vellum_timing::clock::{Anchor, Clock, ClockKind};
use vellum_timing::record::Counts;

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
    /// The arms, in the order in which they ran.
    order: [u8; 3],
}

impl Raw {
    /// Not zero, because memory with zeros may not be resident yet.
    const EMPTY: Raw = Raw { first: [1; 3], ticks: [1; 3], order: [1; 3] };
}

/// Counts during a block of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first of its rounds; the last one is just before the next block's first.
    pub first_round: usize,
    /// Thread time, nanoseconds.
    pub cpu_ns: u64,
    /// The kernel's counts for the thread.
    pub counts: Counts,
}

impl Block {
    /// Not zero, because memory with zeros may not be resident yet.
    const EMPTY: Block = Block {
        first_round: 1,
        cpu_ns: 1,
        counts: Counts { minor: 1, major: 1, voluntary: 1, involuntary: 1 },
    };
}

/// The results of a duel: every round, in order.
#[derive(Clone, Debug)]
pub struct Duel {
    clock: Clock,
    base: Base,
    /// Operations in each timing.
    batch: u64,
    order: ArmOrder,
    seed: u64,
    rounds: Vec<Raw>,
    blocks: Vec<Block>,
    began: Anchor,
    ended: Anchor,
}

/// Runs `a` and `b` in turns; `a` is two of the three arms.
///
/// # Errors
/// If no clock is available, or an operation is too short for it and must not be batched.
pub fn duel<A, B>(
    mut a: impl FnMut() -> A,
    mut b: impl FnMut() -> B,
    options: &DuelOptions,
) -> Result<Duel, BenchError> {
    let mut a = || drop(black_box(a()));
    let mut b = || drop(black_box(b()));
    duel_between([&mut a, &mut b], options)
}

/// A duel of operations that are given as pointers.
///
/// # Errors
/// Those of [`duel`].
pub fn duel_between(operations: [&mut dyn FnMut(); 2], options: &DuelOptions) -> Result<Duel, BenchError> {
    let mut bout = Bout::open(operations, options)?;
    bout.measure_for(options.time);
    Ok(bout.finish())
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

    /// The base of the timings.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// The order of the arms.
    #[must_use]
    pub fn order(&self) -> ArmOrder {
        self.order
    }

    /// The seed of the orders.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The counts by block of rounds.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
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

    /// The arms of round `round`, in the order in which they ran, as places in [`ARMS`](crate::ARMS).
    #[must_use]
    pub fn order_of(&self, round: usize) -> Option<[u8; 3]> {
        self.rounds.get(round).map(|raw| raw.order)
    }

    /// The pairs for the ratio: each round's B and A, so that the ratio is above 1 if B takes longer.
    #[must_use]
    pub fn pairs(&self) -> Vec<(f64, f64)> {
        self.rounds().map(|[a, _, b]| (b, a)).collect()
    }

    /// The pairs for the control: each round's A' and A.
    #[must_use]
    pub fn control(&self) -> Vec<(f64, f64)> {
        self.rounds().map(|[a, double, _]| (double, a)).collect()
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

    /// The observations of one arm as a series; `arm` is a place in [`ARMS`](crate::ARMS). Counts are left
    /// out, because they are of blocks.
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
    use crate::End;
    use std::cell::RefCell;
    use vellum_measure::{Direction, Plan, Why};

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

    fn work(turns: u64) -> u64 {
        (0..black_box(turns)).fold(1, |sum, i| black_box(sum ^ i.wrapping_mul(sum)))
    }

    #[test]
    fn every_round_runs_every_arm_once_in_the_drawn_order() {
        for order in [ArmOrder::Random, ArmOrder::Fixed, ArmOrder::Mirrored] {
            let calls = RefCell::new(Vec::new());
            let duel = duel(
                || {
                    calls.borrow_mut().push('a');
                    work(2000)
                },
                || {
                    calls.borrow_mut().push('b');
                    work(2000)
                },
                &quick(order),
            )
            .unwrap();
            assert!((ROUNDS_MIN..=200).contains(&duel.len()) && duel.batch() == 1);
            let calls = calls.into_inner();
            // Earlier calls were gauging and warm-up.
            let last = &calls[calls.len() - 3 * duel.len()..];
            for (round, called) in last.chunks(3).enumerate() {
                let said = duel.order_of(round).unwrap().map(|arm| if arm == 2 { 'b' } else { 'a' });
                assert_eq!(called, said, "round {round}, {order:?}");
            }
            let starts: Vec<_> =
                duel.rounds.iter().map(|raw| raw.order.map(|arm| raw.first[usize::from(arm)])).collect();
            assert!(starts.concat().windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }

    #[test]
    fn blocks_cover_all_rounds() {
        let duel = duel(|| work(2000), || work(2000), &quick(ArmOrder::Random)).unwrap();
        assert_eq!(duel.blocks()[0].first_round, 0);
        assert!(duel.blocks().windows(2).all(|pair| pair[0].first_round < pair[1].first_round));
        assert!(duel.blocks().iter().all(|block| block.first_round < duel.len()));
        assert!(duel.blocks().iter().map(|block| block.cpu_ns).sum::<u64>() > 0);
    }

    #[test]
    fn a_tenfold_difference_is_found() {
        let duel = duel(|| work(1000), || work(10_000), &quick(ArmOrder::Random)).unwrap();
        let ratios = duel.pairs().iter().map(|(b, a)| b / a).collect::<Vec<_>>();
        let middle = vellum_measure::median(&ratios).unwrap();
        assert!(middle > 3.0, "{middle}");
        let found = duel.compare(&Options::default()).unwrap();
        assert!(found.headline.ratio.low > 3.0 && found.direction() == Direction::More, "{found:?}");
        let (series, control) = (duel.series("duel", 2), duel.control());
        assert_eq!(series.label("arm"), Some("B"));
        assert_eq!(series.walls().len(), control.len());
        assert!(series.starts().unwrap().windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_bout_continues_after_a_look() {
        let (mut a, mut b) = (|| assert!(work(500) != 7), || assert!(work(500) != 7));
        let options = DuelOptions { time: Duration::from_secs(60), ..quick(ArmOrder::Random) };
        let mut bout = Bout::open([&mut a, &mut b], &options).unwrap();
        for (rounds, so_far) in [(3, 3), (40, 43), (1, 44), (1000, 200)] {
            bout.measure(rounds);
            assert_eq!((bout.so_far().len(), bout.left()), (so_far, 200 - so_far));
        }
        let plan = Plan::new(1e-9, u64::MAX);
        assert_eq!(bout.follow(&plan), End::Rule(Why::RoundsMax), "there is no room");
        let duel = bout.finish();
        assert!(duel.rounds.windows(2).all(|pair| pair[0].first[0] < pair[1].first[0]));
        assert!(duel.blocks().windows(2).all(|pair| pair[0].first_round < pair[1].first_round));
        let whole = duel_between([&mut a, &mut b], &options).unwrap();
        let orders = |duel: &Duel| (0..44).map(|round| duel.order_of(round)).collect::<Vec<_>>();
        assert_eq!(orders(&duel), orders(&whole), "looking does not change the orders");
    }

    #[test]
    fn a_plan_ends_at_a_narrow_interval() {
        let (mut a, mut b) = (|| assert!(work(500) != 7), || assert!(work(500) != 7));
        let options = DuelOptions { time: Duration::from_secs(60), ..quick(ArmOrder::Random) };
        let mut bout = Bout::open([&mut a, &mut b], &options).unwrap();
        assert_eq!(bout.follow(&Plan::new(1e3, u64::MAX)), End::Rule(Why::NarrowEnough));
        assert_eq!(bout.so_far().len(), vellum_measure::ROUNDS_MIN);
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
