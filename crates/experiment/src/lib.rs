//! One experiment: things compared with each other by turns, in random order, until a rule says stop.
//!
//! ```text
//!                   Orders: who runs when         Stop: rounds, time, width of the interval
//!                      │                             │
//! Experiment  round 1: B A A'   round 2: A' B A   …  ┴─▶ End: by the rule, by the executor, by a signal
//!                      └─ Turn ─▶ Executor: runs one arm once, and keeps its observation
//! ```
//!
//! **Why by turns.** Speed of the processor, temperature and neighbours drift. Measuring all of A and then
//! all of B charges the drift to one of them. Here every arm runs once a round, and figures are compared
//! within rounds.
//!
//! **Why in random order.** In a fixed order each arm has the same predecessor every time, and inherits what
//! that one leaves in caches, free lists and clock frequency. The order of each round is drawn from a seed,
//! which repeats it.
//!
//! **Words.** An *arm* is one of the things compared; a *turn* is one run of one arm; a *round* has one turn
//! of each arm. The *control* is an arm that does the same as another (A/A): its ratio shows what this
//! machine cannot tell from nothing.
//!
//! The loop keeps no observation: the [`Executor`] does, in the form and the memory it likes. So nothing lies
//! between two arms but the executor's own code. The loop loses no observation to an error or a signal; what
//! an executor does with an incomplete round is its own affair.
//!
//! | module | arms are | executor |
//! | --- | --- | --- |
//! | [`duel`] | two operations and a control | calls them in this process, between two stamps of a clock |
//! | [`process_duel`] | two or more programs and a control | spawns them, and waits for their resource usage |
//!
//! A closure that takes a [`Turn`] is an executor too: `vellum run --compare` and the papers' experiments use
//! one.

mod arms;
pub mod duel;
mod order;
pub mod process_duel;
mod rounds;
mod stop;

pub use arms::{ARMS, arm_name};
pub use order::{ArmOrder, Orders};
pub use rounds::{End, Executor, Experiment, Turn};
pub use stop::Stop;
