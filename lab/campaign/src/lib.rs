//! Comparison of processes: each runs in an environment built from nothing, and every run is kept.
//!
//! ```text
//! Peer ─▶ Arm = Launch ┐
//!         Arm          ├─▶ Cell ─▶ Campaign ─▶ Sheet: all runs by arm, with Metrics or a reason
//!         Arm          ┘
//! ```
//!
//! An experiment makes cells and reads sheets; the campaign starts the processes. Experiment and worker
//! agree on the figures that the worker reports. The driver adds the figures measured from outside (times,
//! faults, peak memory).

pub mod cells;
pub mod confine;
mod driver;
mod expect;
mod goal;
mod launch;
mod metrics;
mod peer;
pub mod worker;

pub use driver::{Arm, Campaign, Cell, Run, Sheet};
pub use expect::{EXPECT, OtherMalloc, check_malloc};
pub use goal::{Bound, Goal, Verdict};
pub use launch::{Ended, Launch};
pub use metrics::Metrics;
pub use peer::{GLIBC, Missing, Peer, VELLUM, packaged, quietly};
