//! The loop of an experiment: draws an order, gives each arm its turn, and applies the stop rule.
//!
//! Invariants: every complete round has every arm once. An [interrupt](Interrupt) is checked before each
//! turn, and an executor's error ends the run at once. In both cases the executor keeps all earlier
//! observations.

use crate::{ArmOrder, Stop};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use vellum_measure::{Interval, Rng};
use vellum_process::Interrupt;

/// A turn: one arm's run in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The round, from 0.
    pub round: usize,
    /// The place in the round, from 0.
    pub place: usize,
    /// The arm, from 0.
    pub arm: usize,
}

/// Runs arms. Every `FnMut(Turn) -> Result<(), E>` is an executor.
pub trait Executor {
    /// The error of a run.
    type Error;

    /// Runs one arm once, and stores the observation.
    ///
    /// # Errors
    /// Any error ends the experiment.
    fn run(&mut self, turn: Turn) -> Result<(), Self::Error>;

    /// Called after each round: true if the experiment should continue.
    #[inline]
    fn goes_on(&mut self) -> bool {
        true
    }

    /// The interval of the ratio so far, for [`Stop::Narrow`].
    fn interval(&self) -> Option<Interval> {
        None
    }

    /// The time spent since `began`. An executor with stamps need not read a clock for this.
    #[inline]
    fn spent(&self, began: Instant) -> Duration {
        began.elapsed()
    }
}

impl<E, F: FnMut(Turn) -> Result<(), E>> Executor for F {
    type Error = E;

    fn run(&mut self, turn: Turn) -> Result<(), E> {
        self(turn)
    }
}

/// The state of an experiment: the next turn.
#[derive(Debug)]
pub struct Experiment {
    order: ArmOrder,
    rng: Rng,
    /// The arms in the order of the current round.
    arms: Vec<usize>,
    rounds: usize,
}

impl Experiment {
    /// An experiment with `arms` arms, whose orders are drawn from `seed`.
    #[must_use]
    pub fn new(order: ArmOrder, arms: usize, seed: u64) -> Experiment {
        Experiment { order, rng: Rng::new(seed), arms: vec![0; arms], rounds: 0 }
    }

    /// Runs rounds until `stop` or `executor` ends the experiment, or a signal arrives, which is then the
    /// result. Earlier rounds count.
    ///
    /// # Errors
    /// The executor's.
    #[inline]
    pub fn run<X: Executor>(&mut self, stop: &Stop, executor: &mut X) -> Result<Option<i32>, X::Error> {
        let began = Instant::now();
        while let Some(more) = stop.next(self.rounds, || executor.spent(began), || executor.interval()) {
            for _ in 0..more {
                if let ControlFlow::Break(signal) = self.round(executor)? {
                    return Ok(signal);
                }
            }
        }
        Ok(None)
    }

    /// Runs one round. It is the last one if the executor ends the experiment, or if a signal arrives: the
    /// round is then incomplete, and the signal is the result.
    ///
    /// # Errors
    /// The executor's.
    #[inline]
    pub fn round<X: Executor>(&mut self, executor: &mut X) -> Result<ControlFlow<Option<i32>>, X::Error> {
        self.order.draw(self.rounds, &mut self.rng, &mut self.arms);
        for (place, &arm) in self.arms.iter().enumerate() {
            if let Some(signal) = Interrupt::arrived() {
                return Ok(ControlFlow::Break(Some(signal)));
            }
            executor.run(Turn { round: self.rounds, place, arm })?;
        }
        if let Some(signal) = Interrupt::arrived() {
            return Ok(ControlFlow::Break(Some(signal)));
        }
        self.rounds += 1;
        Ok(if executor.goes_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(None) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Plan;

    #[test]
    fn every_round_has_every_arm_once_in_random_order() {
        let mut turns = Vec::new();
        let mut executor = |turn| -> Result<(), ()> {
            turns.push(turn);
            Ok(())
        };
        let mut experiment = Experiment::new(ArmOrder::Random, 4, 7);
        assert_eq!(experiment.run(&Stop::rounds(30), &mut executor), Ok(None));
        assert_eq!(experiment.run(&Stop::rounds(50), &mut executor), Ok(None));
        assert_eq!(turns.len(), 4 * 50, "it goes on where it was");
        for (number, round) in turns.chunks(4).enumerate() {
            let mut arms: Vec<usize> = round.iter().map(|turn| turn.arm).collect();
            arms.sort_unstable();
            assert_eq!(arms, [0, 1, 2, 3]);
            assert!(
                round.iter().enumerate().all(|(place, turn)| (turn.round, turn.place) == (number, place))
            );
        }
    }

    #[test]
    fn an_error_ends_the_run_and_loses_no_observation() {
        let mut kept = Vec::new();
        let mut executor = |turn: Turn| {
            if turn.round == 2 && turn.place == 1 {
                return Err("it broke");
            }
            kept.push(turn);
            Ok(())
        };
        let ran = Experiment::new(ArmOrder::Random, 3, 1).run(&Stop::rounds(9), &mut executor);
        assert_eq!(ran, Err("it broke"));
        assert_eq!(kept.len(), 2 * 3 + 1);
    }

    /// An executor whose interval gets narrower, and which ends the experiment after some rounds.
    struct Narrowing {
        rounds: usize,
        enough: usize,
    }

    impl Executor for Narrowing {
        type Error = ();

        fn run(&mut self, turn: Turn) -> Result<(), ()> {
            self.rounds = turn.round + 1;
            Ok(())
        }

        fn goes_on(&mut self) -> bool {
            self.rounds < self.enough
        }

        fn interval(&self) -> Option<Interval> {
            let half_width = 1.0 / (self.rounds as f64).sqrt();
            Some(Interval { estimate: 1.0, low: (-half_width).exp(), high: half_width.exp() })
        }
    }

    #[test]
    fn the_rule_or_the_executor_ends_the_run() {
        let run = |stop, enough| {
            let mut executor = Narrowing { rounds: 0, enough };
            assert_eq!(Experiment::new(ArmOrder::Fixed, 2, 1).run(&stop, &mut executor), Ok(None));
            executor.rounds
        };
        let narrow = Stop::Narrow(Plan::new(0.08, u64::MAX));
        let rounds = run(narrow, usize::MAX);
        assert!((157..320).contains(&rounds), "{rounds} rounds for 1/sqrt(rounds) <= 0.08");
        assert_eq!(run(narrow, 3), 3);
        let at_once = Stop::Time { time: Duration::ZERO, least: 2, most: 9 };
        assert_eq!(run(at_once, usize::MAX), 2);
    }
}
