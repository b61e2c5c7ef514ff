//! A running duel: the operations as arms, timed in this process.

use super::{Block, Duel, DuelOptions, ROUNDS_MAX, ROUNDS_MIN, Raw};
use crate::arms::{ARMS, THING};
use crate::{End, Executor, Experiment, Stop, Turn};
use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};
use vellum_measure::{Interval, Options, Plan};
use vellum_timing::bench::{BATCH_MAX, BenchError, choose_batch, gauge};
use vellum_timing::clock::{Anchor, Clock, read};
use vellum_timing::record::{Counts, Detail, Recorder};

/// The approximate interval between reads of the counters.
const BLOCK: Duration = Duration::from_millis(20);
/// The observations that gauge the length of an arm.
const GAUGES: usize = 32;
/// The factor of space beyond the expected rounds, because arms get faster as caches warm up.
const ROOM: f64 = 1.5;
/// Space for blocks that end early because a caller looks at the results.
const BLOCKS_SPARE: usize = 64;

/// A duel whose caller decides when it ends, from the results so far.
///
/// [`DuelOptions::time`] determines the space for rounds, however many are measured.
pub struct Bout<'a> {
    experiment: Experiment,
    timed: Timed<'a>,
    capacity: usize,
}

impl std::fmt::Debug for Bout<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bout")
            .field("rounds", &self.timed.duel.len())
            .field("left", &self.left())
            .finish_non_exhaustive()
    }
}

impl<'a> Bout<'a> {
    /// Gauges both operations and warms them up.
    ///
    /// # Errors
    /// Those of [`duel`](super::duel).
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
            rounds: touched(capacity, Raw::EMPTY),
            blocks: touched(2 * (capacity / block_rounds) + BLOCKS_SPARE, Block::EMPTY),
            began: now,
            ended: now,
        };
        let experiment = || Experiment::new(options.order, ARMS.len(), options.seed);
        let timed = Timed::new(operations, duel, block_rounds);
        let mut bout = Bout { experiment: experiment(), timed, capacity };
        // The warm-up is measured like the duel, and its rounds are dropped.
        bout.go(&Stop::Time { time: options.warm_up, least: 1, most: capacity });
        bout.timed.duel.rounds.clear();
        bout.timed.duel.blocks.clear();
        bout.experiment = experiment();
        bout.timed.duel.began = Anchor::now(&clock);
        Ok(bout)
    }

    /// Measures this many rounds, or as many as there is space for.
    pub fn measure(&mut self, rounds: usize) {
        self.go(&Stop::rounds(self.so_far().len().saturating_add(rounds).min(self.capacity)));
    }

    /// Measures for this time and until there are [`ROUNDS_MIN`] rounds, or until the space is used up.
    pub fn measure_for(&mut self, time: Duration) {
        let least = (self.so_far().len() + 1).max(ROUNDS_MIN);
        self.go(&Stop::Time { time, least, most: self.capacity });
    }

    /// Measures until the interval is narrow enough for `plan`, its time is over (looks included), or the
    /// space is used up.
    pub fn follow(&mut self, plan: &Plan) -> End {
        self.go(&Stop::Narrow(Plan { rounds_max: plan.rounds_max.min(self.capacity), ..*plan }))
    }

    /// The number of rounds for which there is space.
    #[must_use]
    pub fn left(&self) -> usize {
        self.capacity - self.so_far().len()
    }

    /// All rounds so far.
    #[must_use]
    pub fn so_far(&self) -> &Duel {
        &self.timed.duel
    }

    /// All rounds.
    #[must_use]
    pub fn finish(self) -> Duel {
        self.timed.duel
    }

    #[inline(never)]
    fn go(&mut self, stop: &Stop) -> End {
        self.timed.open();
        let Ok(end) = self.experiment.run(stop, &mut self.timed);
        self.timed.close();
        end
    }
}

/// Times operations in this process, with results in memory that is already there.
struct Timed<'a> {
    operations: [&'a mut dyn FnMut(); 2],
    duel: Duel,
    /// The current round.
    raw: Raw,
    /// Rounds in a block; first round of the current block; the thread's counts and time at its start.
    block_rounds: usize,
    first_round: usize,
    counts: Counts,
    cpu_ns: u64,
    /// Stamps: the start of this measurement, and the end of the last arm.
    began: u64,
    last: u64,
}

impl<'a> Timed<'a> {
    fn new(operations: [&'a mut dyn FnMut(); 2], duel: Duel, block_rounds: usize) -> Timed<'a> {
        let (raw, counts) = (Raw::EMPTY, Counts::default());
        Timed { operations, duel, raw, block_rounds, first_round: 0, counts, cpu_ns: 0, began: 0, last: 0 }
    }

    fn open(&mut self) {
        self.began = self.duel.clock.stamp();
        self.last = self.began;
        (self.counts, self.cpu_ns, self.first_round) = (Counts::now(), thread_ns(), self.duel.len());
    }

    fn close(&mut self) {
        if self.first_round < self.duel.len() {
            self.end_block();
        }
        self.duel.ended = Anchor::now(&self.duel.clock);
    }

    fn end_block(&mut self) {
        let (now, cpu_now) = (Counts::now(), thread_ns());
        let (first_round, counts) = (self.first_round, now.since(&self.counts));
        self.duel.blocks.push(Block { first_round, cpu_ns: cpu_now.saturating_sub(self.cpu_ns), counts });
        (self.counts, self.cpu_ns, self.first_round) = (now, cpu_now, self.duel.len());
    }
}

impl Executor for Timed<'_> {
    type Error = Infallible;

    #[inline(always)]
    fn run(&mut self, Turn { place, arm, .. }: Turn) -> Result<(), Infallible> {
        let (clock, batch) = (self.duel.clock, self.duel.batch);
        let operation = &mut self.operations[THING[arm]];
        let first = clock.stamp();
        for _ in 0..batch {
            operation();
        }
        let second = clock.stamp();
        self.raw.first[arm] = first;
        self.raw.ticks[arm] = second.saturating_sub(first);
        self.raw.order[place] = arm as u8;
        self.last = second;
        Ok(())
    }

    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        self.duel.rounds.push(self.raw);
        if self.duel.len() - self.first_round >= self.block_rounds {
            self.end_block();
        }
        true
    }

    fn interval(&self) -> Option<Interval> {
        Some(self.duel.compare(&Options::default()).ok()?.headline.ratio)
    }

    #[inline(always)]
    fn spent(&self, _began: Instant) -> Duration {
        let ticks = self.last.saturating_sub(self.began);
        Duration::from_nanos(self.duel.clock.nanoseconds(ticks) as u64)
    }
}

/// A vector whose memory is already resident.
fn touched<T: Clone>(capacity: usize, value: T) -> Vec<T> {
    let mut items = vec![value; capacity];
    black_box(items.as_mut_slice());
    items.clear();
    items
}

fn thread_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}
