//! Statistics of timings, without a clock.
//!
//! Timings of computer programs are not drawn from a bell curve. A long tail of disturbances (interrupts, other
//! tenants, page supply) lies on one side, the level itself moves between runs, and neighbouring observations
//! resemble each other. Means follow the tail and textbook intervals assume independence, so both mislead. What
//! repeats best on such data is simple and lives here:
//!
//! - **pairs**: the two things compared are timed close together in time, so that what moves both cancels out;
//! - **random order**: within a round each arm comes once, in an order drawn anew each round ([`Order`]), so that
//!   no arm is always the one that runs after its rival;
//! - **median log-ratio**: one figure from the pairs that a few wild ones cannot move ([`paired_ratio`]);
//! - **resampled intervals**: how far that figure could be off, found by drawing the same observations again, in
//!   blocks once there are enough of them, so that neighbours that resemble each other stay together.
//!
//! ```text
//! Order ──▶ (somebody's clock) ──▶ pairs ──▶ paired_ratio ──▶ Interval
//!   └───────────── Rng ─────────────────────────┘
//! ```
//!
//! Everything is a pure function of its arguments and a seed: the same seed gives the same order and the same
//! interval on every machine. A function that has no answer (no data, a value that is not a number) says so with
//! `None` and never invents one.
//!
//! ```
//! use vellum_measure::{median, paired_ratio};
//!
//! let pairs = [(2.0, 1.0), (4.1, 2.0), (6.0, 3.0), (8.0, 4.0), (90.0, 5.0)];
//! let ratio = paired_ratio(&pairs, 1000, 7).unwrap();
//! assert!((ratio.estimate - 2.0).abs() < 1e-12, "one wild pair does not move it");
//! assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
//! ```

mod interval;
mod order;
mod quantile;
mod ratio;
mod rng;

pub use interval::Interval;
pub use order::Order;
pub use quantile::{median, quantile};
pub use ratio::{BLOCKS_FROM_PAIRS, CONFIDENCE, block_pairs, paired_ratio};
pub use rng::Rng;
