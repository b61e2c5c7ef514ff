//! Runs a duel in this process: calls the two operations in the order of each round, and stores their times.

use super::{Duel, DuelOptions, ROUNDS_MAX, ROUNDS_MIN, Raw};
use crate::arms::{ARMS, thing_of};
use crate::{Executor, Experiment, Stop, Turn};
use std::convert::Infallible;
use std::time::{Duration, Instant};
use vellum_measure::touched;
use vellum_timing::bench::{BATCH_MAX, BenchError, choose_batch, gauge};
use vellum_timing::clock::{Anchor, Clock};
use vellum_timing::record::{Detail, Recorder};

/// The observations that gauge the length of an arm.
const GAUGES: usize = 32;
/// The factor of space beyond the expected rounds, because arms get faster as caches warm up.
const ROOM: f64 = 1.5;

/// A duel that is ready to be measured: both operations are gauged and warm.
///
/// [`DuelOptions::time`] determines the space for rounds, however many are measured.
pub struct Bout<'a> {
    experiment: Experiment,
    timed: Timed<'a>,
    capacity: usize,
}

impl std::fmt::Debug for Bout<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bout").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl<'a> Bout<'a> {
    /// Gauges both operations and warms them up.
    ///
    /// # Errors
    /// Those of [`duel_between`](super::duel_between).
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
            let arms = (0..ARMS.len()).filter(|&arm| thing_of(arm) == thing);
            let name = arms.clone().map(|arm| ARMS[arm]).next().unwrap_or_default();
            batch = batch.max(choose_batch(options.batching, recorder.base(), ns, BATCH_MAX, name)?);
            round_ns += ns * arms.count() as f64;
        }
        let round_ns = (round_ns * batch as f64).max(recorder.base().shortest_ns());
        let in_time = |time: Duration| (time.as_nanos() as f64 / round_ns * ROOM) as usize;
        let most = options.rounds.clamp(ROUNDS_MIN, ROUNDS_MAX);
        let capacity = in_time(options.time).clamp(ROUNDS_MIN, most);
        let now = Anchor::now(&clock);
        let duel = Duel {
            clock,
            base: recorder.base().clone(),
            batch,
            order: options.order,
            rounds: touched(capacity, Raw::EMPTY),
            began: now,
            ended: now,
        };
        let experiment = || Experiment::new(options.order, ARMS.len(), options.seed);
        let timed = Timed { operations, duel, raw: Raw::EMPTY, began: 0, last: 0 };
        let mut bout = Bout { experiment: experiment(), timed, capacity };
        // The warm-up is measured like the duel, and its rounds are dropped.
        bout.go(&Stop::Time { time: options.warm_up, least: 1, most: capacity });
        bout.timed.duel.rounds.clear();
        bout.experiment = experiment();
        bout.timed.duel.began = Anchor::now(&clock);
        Ok(bout)
    }

    /// Measures for this time, and at least [`ROUNDS_MIN`] rounds, or until the space is used up.
    #[must_use]
    pub fn measure(mut self, time: Duration) -> Duel {
        self.go(&Stop::Time { time, least: ROUNDS_MIN, most: self.capacity });
        self.timed.duel
    }

    #[inline(never)]
    fn go(&mut self, stop: &Stop) {
        let timed = &mut self.timed;
        timed.began = timed.duel.clock.stamp();
        timed.last = timed.began;
        let Ok(_) = self.experiment.run(stop, timed);
        timed.duel.ended = Anchor::now(&timed.duel.clock);
    }
}

/// Times operations in this process, and writes the times to memory that is already resident.
struct Timed<'a> {
    operations: [&'a mut dyn FnMut(); 2],
    duel: Duel,
    /// The current round.
    raw: Raw,
    /// Stamps: the start of this measurement, and the end of the last arm.
    began: u64,
    last: u64,
}

impl Executor for Timed<'_> {
    type Error = Infallible;

    #[inline(always)]
    fn run(&mut self, Turn { arm, .. }: Turn) -> Result<(), Infallible> {
        let (clock, batch) = (self.duel.clock, self.duel.batch);
        let operation = &mut self.operations[thing_of(arm)];
        let first = clock.stamp();
        for _ in 0..batch {
            operation();
        }
        let second = clock.stamp();
        self.raw.first[arm] = first;
        self.raw.ticks[arm] = second.saturating_sub(first);
        self.last = second;
        Ok(())
    }

    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        self.duel.rounds.push(self.raw);
        true
    }

    #[inline(always)]
    fn spent(&self, _began: Instant) -> Duration {
        let ticks = self.last.saturating_sub(self.began);
        Duration::from_nanos(self.duel.clock.nanoseconds(ticks) as u64)
    }
}
