//! `vellum plan`: the memory that a fleet would need if each container had its recommended size.
//!
//! ```text
//! Prometheus ─▶ export ─▶ Parquet, a row for each container and hour ─▶ SQL, Spark, Polars, DuckDB
//!                              │ read in pieces
//!                              ▼
//!                         Fleet: for each container, the time it loses with each size
//!                              │
//!                              ▼
//!              choose: the least memory for a given slowdown of the whole fleet (greedy, on convex hulls)
//!                              │
//!                              ▼
//!              nodes: how many nodes hold the hour that needs most       owners: memory and slowdown
//! ```
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | container-hour | a row: a container's curve in one hour, its CPU time and its resident memory |
//! | owner | the namespace, unit or user that a container belongs to |
//! | lost | CPU seconds lost under a limit: S · (f(limit) − f(largest working set)) · all CPU seconds |
//! | S, f(z) | the delay of a page fault; page faults per CPU second with memory z |
//! | step | a size of the grid: [`STEPS`] sizes for each doubling, 1.1 % apart |
//!
//! # Guarantees
//!
//! - Files are read in pieces: the program's memory grows with the number of containers, not of hours.
//! - A size is never below the working set at the smallest window, in any hour: the loss below is unknown.
//! - Invalid rows are left out and counted.
//!
//! Source: `vellum_workset` (`slowdown`) for the cost of a limit. Fox, "Discrete optimization via marginal
//! analysis" (1966), for the greedy choice, which is exact on convex hulls except for the last step.

mod choose;
mod export;
mod file;
mod fleet;
mod nodes;

pub use choose::{Choice, choose, each};
pub use export::export;
pub use file::{POINTS, Row, Writer, read};
pub use fleet::{Container, Fleet, Seen};
pub use nodes::{Nodes, nodes, peak};

use std::sync::LazyLock;

/// The number of sizes in an octave.
pub const STEPS: f64 = 64.0;
/// The smallest and the largest size, in bytes.
const LEAST: f64 = 4096.0;
const MOST: f64 = (1_u64 << 50) as f64;

/// The first step that is not below this size.
fn step_up(bytes: f64) -> i32 {
    ((bytes.clamp(LEAST, MOST) / LEAST).log2() * STEPS - 1e-6).ceil() as i32
}

fn size(step: i32) -> f64 {
    /// A table, because sizes are computed many times for each container-hour.
    static SIZES: LazyLock<Vec<f64>> =
        LazyLock::new(|| (0..=step_up(MOST)).map(|step| LEAST * (f64::from(step) / STEPS).exp2()).collect());
    SIZES[step as usize]
}
