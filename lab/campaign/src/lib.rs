//! Campaigns that compare processes. Each process has an environment built from nothing; every run is kept.
//!
//! ```text
//! Peer ─▶ Arm = Launch ┐
//!         Arm          ├─▶ Cell ─▶ Campaign ─▶ Sheet: all runs by arm, with Metrics or a reason
//!         Arm          ┘
//! ```
//!
//! A *peer* is an allocator; an *arm* is one of the processes that a *cell* compares. An experiment makes
//! cells and reads sheets; the campaign starts the processes. A worker process reports figures under names
//! that the experiment knows. The driver adds the figures measured from outside (times, faults, peak memory).

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
