//! Workers compared with each other: processes in an environment made from nothing, every run kept.
//!
//! ```text
//! Peer ─▶ Arm = Launch ┐
//!         Arm          ├─▶ Cell ─▶ Campaign ─▶ Sheet: all runs by arm, with Metrics or a reason
//!         Arm          ┘
//! ```
//!
//! An experiment makes cells and reads sheets; it starts no process itself. Which figures a process reports
//! is between the experiment and its worker: the driver adds what can be seen from outside (times, faults,
//! peak memory).

pub mod confine;
mod driver;
mod expect;
mod goal;
mod launch;
mod metrics;
mod peer;

pub use driver::{Arm, Campaign, Cell, Run, Sheet};
pub use expect::{EXPECT, OtherMalloc, check_malloc};
pub use goal::{Bound, Goal, Verdict};
pub use launch::{Ended, Launch};
pub use metrics::Metrics;
pub use peer::{GLIBC, Missing, Peer, VELLUM, packaged};
