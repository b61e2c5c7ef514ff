//! Experiments: compare operations or programs (*arms*) that run in rounds, in a random order within each
//! round.
//!
//! ```text
//!                   ArmOrder: order of the arms   Stop rule: rounds, time, width of the confidence interval
//!                      │                             │
//! Experiment  round 1: B A A'   round 2: A' B A   …  ┴─▶ ends by this rule, by the executor, by a signal
//!                      └─ Turn ─▶ Executor: runs one arm once, and stores its measurements (the observation)
//! ```
//!
//! **Why in turns.** The processor's speed, temperature and neighbours drift. If all runs of A came before
//! all runs of B, the drift would count as a difference between A and B. Here every arm runs once in each
//! round, and arms are compared within rounds.
//!
//! **Why in random order.** In a fixed order each arm always has the same predecessor. It then always starts
//! with the caches, free lists and clock frequency that this predecessor left. The order of each round is
//! drawn from a seed; the same seed gives the same orders.
//!
//! **Words.** An *arm* is one of the things compared; a *turn* is one run of one arm; a *round* has one turn
//! of each arm. The *control* (A' in the diagram) is an arm that does the same as arm A. Its ratio to A shows
//! the noise of this machine.
//!
//! The loop keeps no observations; the [`Executor`] does, in its own form and memory. Between two arms only
//! the executor's own code runs. Errors and signals lose no observation already made. The executor decides
//! how to treat an incomplete round.
//!
//! | module | arms | executor |
//! | --- | --- | --- |
//! | [`duel`] | two operations and a control | calls them in this process, between two readings of a clock |
//! | [`process_duel`] | two or more programs and a control | spawns them, and reads their resource usage |
//!
//! A closure that takes a [`Turn`] is also an executor: `vellum run --compare` and the papers' experiments
//! use one.

mod arms;
pub mod duel;
mod order;
pub mod process_duel;
mod rounds;
mod stop;

pub use arms::{ARMS, arm_name};
pub use order::ArmOrder;
pub use rounds::{Executor, Experiment, Turn};
pub use stop::Stop;
