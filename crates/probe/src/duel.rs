//! A duel: two operations timed against each other in one process, by turns in random order.
//!
//! ```text
//! round   1: B A A'   2: A' B A   3: A A' B   …        three arms, each once a round, order drawn anew
//!            └┬┘ └┬┘
//!             │   └── A against A': the same operation, so the answer must be nothing (the control)
//!             └────── A against B: the answer
//! ```
//!
//! Whatever moves slower than a round (frequency, neighbours, the level of the machine) moves all three alike and leaves
//! their ratios alone; whatever one arm leaves behind for the next falls on each as often. What A against A' still shows is
//! what this machine cannot tell from nothing, and is printed beside every answer.
//!
//! The arms are called at one place of the code, A and A' through the same pointer: otherwise the compiler would make
//! two copies of A, and where they happen to lie would be measured as a difference.
//!
//! Between two stamps there is the arm's call; between two arms, two stores into memory that is there already. Faults and
//! switches are counted once a [block](Block), not once an arm: a system call beside each would disturb what is
//! measured, operations that allocate above all.
//!
//! Source: shared measurements of this project (random interleaving in pairs repeats fifty times better than any sequence);
//! Bates times one thing at a time.

use crate::arms::{self, ARMS, ArmOrder, ORDERS, Orders, THING};
use crate::bench::{BATCH_MAX, Batching, BenchError, choose_batch, gauge};
use crate::clock::{Anchor, Clock, ClockKind, read};
use crate::record::counts::Counts;
use crate::record::{Detail, Recorder};
use std::hint::black_box;
use std::time::{Duration, Instant};
use vellum_measure::{Arms, Base, CompareError, Comparison, Next, Observation, Options, Plan, Series, Why};

/// Rounds kept at most.
pub const ROUNDS_MAX: usize = 1 << 22;
/// Fewer are no comparison.
pub const ROUNDS_MIN: usize = 10;
/// Counters are read about this often.
const BLOCK: Duration = Duration::from_millis(20);
/// Observations to gauge an arm's length by.
const GAUGES: usize = 32;
/// Room for so much more rounds than were reckoned with: arms get faster as they get warm.
const ROOM: f64 = 1.5;
/// Room for blocks that are cut short where a caller looks.
const BLOCKS_SPARE: usize = 64;
/// How a duel is run.
#[derive(Clone, Debug)]
pub struct DuelOptions {
    /// The clock; the [best](Clock::best) there is, if none.
    pub clock: Option<ClockKind>,
    /// How long to go on; longer, if [`ROUNDS_MIN`] rounds take longer.
    pub time: Duration,
    /// How many rounds at most, from [`ROUNDS_MIN`] to [`ROUNDS_MAX`]; what lies outside is moved in.
    pub rounds: usize,
    /// How long to go on beforehand, thrown away.
    pub warm_up: Duration,
    /// What to do about operations too short for the clock.
    pub batching: Batching,
    /// In which order the arms run.
    pub order: ArmOrder,
    /// Where the random orders come from.
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

/// One round as it is kept while measuring.
#[derive(Clone, Copy, Debug)]
struct Raw {
    /// Each arm's stamps, A, A', B.
    first: [u64; 3],
    ticks: [u64; 3],
    order: u8,
}

/// What was counted during some rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first of its rounds; the last is the one before the next block's first.
    pub first_round: usize,
    /// Thread time, nanoseconds.
    pub cpu_ns: u64,
    /// Page faults served without reading.
    pub minor: u64,
    /// Page faults that waited for reading.
    pub major: u64,
    /// Switches because the thread waited.
    pub voluntary: u64,
    /// Switches because the thread was preempted.
    pub involuntary: u64,
}

impl Block {
    /// Not zero: memory that holds zeros may not be there yet.
    const EMPTY: Block =
        Block { first_round: 1, cpu_ns: 1, minor: 1, major: 1, voluntary: 1, involuntary: 1 };
}

/// What a duel gave: every round, in order.
#[derive(Clone, Debug)]
pub struct Duel {
    clock: Clock,
    base: Base,
    /// Operations in each time.
    batch: u64,
    order: ArmOrder,
    seed: u64,
    rounds: Vec<Raw>,
    blocks: Vec<Block>,
    began: Anchor,
    ended: Anchor,
}

/// Lets `a` and `b` run by turns, `a` in two of three arms.
///
/// # Errors
/// When no clock can be had, or an operation is too short for it and may not be batched.
pub fn duel<A, B>(
    mut a: impl FnMut() -> A,
    mut b: impl FnMut() -> B,
    options: &DuelOptions,
) -> Result<Duel, BenchError> {
    let mut a = || drop(black_box(a()));
    let mut b = || drop(black_box(b()));
    duel_between([&mut a, &mut b], options)
}

/// The same for operations that are pointers already.
///
/// # Errors
/// As for [`duel`].
pub fn duel_between(operations: [&mut dyn FnMut(); 2], options: &DuelOptions) -> Result<Duel, BenchError> {
    let mut bout = Bout::open(operations, options)?;
    bout.measure_for(options.time);
    Ok(bout.finish())
}

/// A duel that goes on as long as its caller likes: to look at what there is, and decide.
///
/// [`DuelOptions::time`] says for how long there is room, whoever measures how much of it.
pub struct Bout<'a> {
    operations: [&'a mut dyn FnMut(); 2],
    orders: Orders,
    duel: Duel,
    capacity: usize,
    block_rounds: usize,
}

impl std::fmt::Debug for Bout<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bout")
            .field("rounds", &self.duel.len())
            .field("left", &self.left())
            .finish_non_exhaustive()
    }
}

impl<'a> Bout<'a> {
    /// Gauges both operations and warms them up.
    ///
    /// # Errors
    /// As for [`duel`].
    pub fn open(
        mut operations: [&'a mut dyn FnMut(); 2],
        options: &DuelOptions,
    ) -> Result<Bout<'a>, BenchError> {
        let clock = options.clock.map_or_else(Clock::best, Clock::open)?;
        let mut recorder = Recorder::new(clock, Detail::Stamps, GAUGES)?;
        let (mut batch, mut round_ns) = (1, 0.0);
        for (thing, operation) in operations.iter_mut().enumerate() {
            let observe = &mut |recorder: &mut Recorder, times| recorder.repeat(times, &mut *operation);
            let ns = gauge(&mut recorder, BATCH_MAX, observe);
            let arms = (0..ARMS.len()).filter(|&arm| THING[arm] == thing);
            let name = arms.clone().map(|arm| ARMS[arm]).next().unwrap_or_default();
            batch = batch.max(choose_batch(options.batching, recorder.base(), ns, BATCH_MAX, name)?);
            round_ns += ns * arms.count() as f64;
        }
        let round_ns = (round_ns * batch as f64).max(recorder.base().shortest_ns());
        let in_time = |time: Duration| (time.as_nanos() as f64 / round_ns * ROOM) as usize;
        let most = options.rounds.clamp(ROUNDS_MIN, ROUNDS_MAX);
        let capacity = in_time(options.time).clamp(ROUNDS_MIN, most);
        let block_rounds = (in_time(BLOCK) as f64 / ROOM).max(1.0) as usize;
        let now = Anchor::now(&clock);
        let duel = Duel {
            clock,
            base: recorder.base().clone(),
            batch,
            order: options.order,
            seed: options.seed,
            rounds: touched(capacity, Raw { first: [1; 3], ticks: [1; 3], order: 1 }),
            blocks: touched(2 * (capacity / block_rounds) + BLOCKS_SPARE, Block::EMPTY),
            began: now,
            ended: now,
        };
        let orders = Orders::new(options.order, options.seed);
        let mut bout = Bout { operations, orders, duel, capacity, block_rounds };
        // Warmed up as it is measured, and forgotten.
        bout.go(1, usize::MAX, options.warm_up);
        bout.duel.rounds.clear();
        bout.duel.blocks.clear();
        bout.orders = Orders::new(options.order, options.seed);
        bout.duel.began = Anchor::now(&clock);
        Ok(bout)
    }

    /// Goes on for so many rounds, or as many as there is room for.
    pub fn measure(&mut self, rounds: usize) {
        self.go(rounds, rounds, Duration::ZERO);
    }

    /// Goes on for so long, and until there are [`ROUNDS_MIN`] rounds, or as long as there is room.
    pub fn measure_for(&mut self, time: Duration) {
        self.go(ROUNDS_MIN.saturating_sub(self.duel.len()).max(1), usize::MAX, time);
    }

    /// Goes on as `plan` says: until the answer is narrow enough, its time is over (looking included), or there is no room.
    pub fn follow(&mut self, plan: &Plan) -> Why {
        let began = Instant::now();
        loop {
            let spent_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let answer = || Some(self.duel.compare(&Options::default()).ok()?.headline.ratio);
            match plan.next(self.duel.len(), spent_ns, answer) {
                Next::Stop(why) => return why,
                Next::Measure(_) if self.left() == 0 => return Why::RoundsMax,
                Next::Measure(rounds) => self.measure(rounds),
            }
        }
    }

    /// Rounds there is room for.
    #[must_use]
    pub fn left(&self) -> usize {
        self.capacity - self.duel.len()
    }

    /// All rounds so far.
    #[must_use]
    pub fn so_far(&self) -> &Duel {
        &self.duel
    }

    /// All rounds.
    #[must_use]
    pub fn finish(self) -> Duel {
        self.duel
    }

    /// Goes on for at least and at most so many rounds, and in between until the time is over.
    #[inline(never)]
    fn go(&mut self, least: usize, most: usize, time: Duration) {
        let clock = self.duel.clock;
        let before = self.duel.len();
        let enough = before.saturating_add(least).min(self.capacity);
        let end = before.saturating_add(most).min(self.capacity);
        let allowed = (time.as_nanos() as f64 / clock.ns_per_tick()) as u64;
        let began = clock.stamp();
        let (mut counts, mut cpu_ns) = (Counts::now(), thread_ns());
        let mut over = false;
        while self.duel.len() < end && !over {
            let first_round = self.duel.len();
            let block_end = (first_round + self.block_rounds).min(end);
            while self.duel.len() < block_end && !over {
                let raw = self.round();
                let last = raw.first[2] + raw.ticks[2];
                self.duel.rounds.push(raw);
                over = last.saturating_sub(began) >= allowed && self.duel.len() >= enough;
            }
            let (now, cpu_now) = (Counts::now(), thread_ns());
            let during = now.since(&counts);
            self.duel.blocks.push(Block {
                first_round,
                cpu_ns: cpu_now.saturating_sub(cpu_ns),
                minor: during.minor,
                major: during.major,
                voluntary: during.voluntary,
                involuntary: during.involuntary,
            });
            (counts, cpu_ns) = (now, cpu_now);
        }
        self.duel.ended = Anchor::now(&clock);
    }

    #[inline(always)]
    fn round(&mut self) -> Raw {
        let (clock, batch) = (self.duel.clock, self.duel.batch);
        let order = self.orders.draw();
        let mut raw = Raw { first: [0; 3], ticks: [0; 3], order };
        for arm in ORDERS[usize::from(order)] {
            let arm = usize::from(arm);
            let operation = &mut self.operations[THING[arm]];
            let first = clock.stamp();
            for _ in 0..batch {
                operation();
            }
            let second = clock.stamp();
            raw.first[arm] = first;
            raw.ticks[arm] = second.saturating_sub(first);
        }
        raw
    }
}

/// An empty vector whose memory is there already.
fn touched<T: Clone>(capacity: usize, value: T) -> Vec<T> {
    let mut items = vec![value; capacity];
    black_box(items.as_mut_slice());
    items.clear();
    items
}

fn thread_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

impl Duel {
    /// How many rounds there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rounds.len()
    }

    /// Whether there were none, which cannot be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Operations in each time.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// What timing nothing costs.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// In which order the arms ran.
    #[must_use]
    pub fn order(&self) -> ArmOrder {
        self.order
    }

    /// Where the orders came from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What was counted meanwhile.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Each round's times of one operation, nanoseconds, base subtracted: A, A', B.
    pub fn rounds(&self) -> impl Iterator<Item = [f64; 3]> {
        self.rounds.iter().map(|raw| self.net(raw))
    }

    /// One of them.
    #[must_use]
    pub fn round(&self, round: usize) -> Option<[f64; 3]> {
        self.rounds.get(round).map(|raw| self.net(raw))
    }

    fn net(&self, raw: &Raw) -> [f64; 3] {
        raw.ticks.map(|ticks| self.base.subtract(self.clock.nanoseconds(ticks)) / self.batch as f64)
    }

    /// The arms of round `round` in the order in which they ran, as places in [`ARMS`].
    #[must_use]
    pub fn order_of(&self, round: usize) -> Option<[u8; 3]> {
        self.rounds.get(round).map(|raw| ORDERS[usize::from(raw.order)])
    }

    /// Each arm's times of one operation by round, nanoseconds, base subtracted: A, A', B.
    #[must_use]
    pub fn arms(&self) -> [Vec<f64>; 3] {
        [0, 1, 2].map(|arm| self.rounds().map(|round| round[arm]).collect())
    }

    /// The answer's pairs: each round's B and A, in this order, so that their ratio is above 1 where B takes longer.
    #[must_use]
    pub fn pairs(&self) -> Vec<(f64, f64)> {
        self.rounds().map(|[a, _, b]| (b, a)).collect()
    }

    /// The control's pairs: each round's A' and A.
    #[must_use]
    pub fn control(&self) -> Vec<(f64, f64)> {
        self.rounds().map(|[a, double, _]| (double, a)).collect()
    }

    /// B against A, with A' against A beside it. The clock's step is filled in.
    ///
    /// # Errors
    /// As for [`Comparison::of`].
    pub fn compare(&self, options: &Options) -> Result<Comparison, CompareError> {
        let [a, control, b] = self.arms();
        let step = self.step_ns();
        Comparison::of(Arms { a: &a, control: &control, b: &b }, &Options { step, ..*options })
    }

    /// The clock's step, a batch's share of it: how finely the times of one operation can differ, nanoseconds.
    #[must_use]
    pub fn step_ns(&self) -> f64 {
        self.clock.step_ns() / self.batch as f64
    }

    /// One arm's observations as a series, `arm` a place in [`ARMS`]. Counters are known for blocks only, and are not in it.
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
            ..arms::series(name, arm, self.order, &self.clock)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

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
    fn every_round_has_every_arm_once_in_the_order_it_says() {
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
            // What was gauged and warmed up came before.
            let last = &calls[calls.len() - 3 * duel.len()..];
            for (round, called) in last.chunks(3).enumerate() {
                let said = duel.order_of(round).unwrap().map(|arm| if arm == 2 { 'b' } else { 'a' });
                assert_eq!(called, said, "round {round}, {order:?}");
            }
            let starts: Vec<_> = duel
                .rounds
                .iter()
                .map(|raw| ORDERS[usize::from(raw.order)].map(|arm| raw.first[usize::from(arm)]))
                .collect();
            assert!(starts.concat().windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }

    #[test]
    fn random_orders_follow_the_seed_and_use_all_six() {
        let orders = |seed| {
            let options = DuelOptions { seed, time: Duration::from_secs(60), ..quick(ArmOrder::Random) };
            let duel = duel(|| work(500), || work(500), &options).unwrap();
            assert_eq!(duel.len(), 200);
            (0..duel.len())
                .map(|round| duel.order_of(round).unwrap())
                .collect::<std::collections::HashSet<_>>()
        };
        assert_eq!(orders(5).len(), 6);
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
    fn ten_times_the_work_is_seen() {
        let duel = duel(|| work(1000), || work(10_000), &quick(ArmOrder::Random)).unwrap();
        let ratios = duel.pairs().iter().map(|(b, a)| b / a).collect::<Vec<_>>();
        let middle = vellum_measure::median(&ratios).unwrap();
        assert!(middle > 3.0, "{middle}");
        let found = duel.compare(&Options::default()).unwrap();
        assert!(
            found.headline.ratio.low > 3.0 && found.direction() == vellum_measure::Direction::More,
            "{found:?}"
        );
        let (series, control) = (duel.series("duel", 2), duel.control());
        assert_eq!(series.label("arm"), Some("B"));
        assert_eq!(series.walls().len(), control.len());
        assert!(series.starts().unwrap().windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_bout_goes_on_where_it_was() {
        let (mut a, mut b) = (|| assert!(work(500) != 7), || assert!(work(500) != 7));
        let options = DuelOptions { time: Duration::from_secs(60), ..quick(ArmOrder::Random) };
        let mut bout = Bout::open([&mut a, &mut b], &options).unwrap();
        for (rounds, so_far) in [(3, 3), (40, 43), (1, 44), (1000, 200)] {
            bout.measure(rounds);
            assert_eq!((bout.so_far().len(), bout.left()), (so_far, 200 - so_far));
        }
        let plan = Plan::new(1e-9, u64::MAX);
        assert_eq!(bout.follow(&plan), Why::RoundsMax, "there is no room");
        let duel = bout.finish();
        assert!(duel.rounds.windows(2).all(|pair| pair[0].first[0] < pair[1].first[0]));
        assert!(duel.blocks().windows(2).all(|pair| pair[0].first_round < pair[1].first_round));
        let whole = duel_between([&mut a, &mut b], &options).unwrap();
        let orders = |duel: &Duel| (0..44).map(|round| duel.order_of(round)).collect::<Vec<_>>();
        assert_eq!(orders(&duel), orders(&whole), "looking does not change the orders");
    }

    #[test]
    fn a_plan_ends_when_the_answer_is_narrow_enough() {
        let (mut a, mut b) = (|| assert!(work(500) != 7), || assert!(work(500) != 7));
        let options = DuelOptions { time: Duration::from_secs(60), ..quick(ArmOrder::Random) };
        let mut bout = Bout::open([&mut a, &mut b], &options).unwrap();
        assert_eq!(bout.follow(&Plan::new(1e3, u64::MAX)), Why::NarrowEnough);
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
