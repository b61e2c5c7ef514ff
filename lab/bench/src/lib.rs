//! The allocator benchmark: Vellum against other widely used allocators, with a target beside every figure.
//!
//! `lab/target/release/vellum-bench --quick` runs it, after `lab/build --release`; `docs/benchmarks.md`
//! explains each line of the output. `vellum-campaign` runs the processes against each other and
//! `vellum-measure` has the statistics. This crate has the workloads, their targets and the tables:
//!
//! ```text
//! Roster ──▶ Plan ──▶ Topic ──▶ Cell, Cell, …  ──▶ Campaign ──▶ Sheet, Sheet, … ──▶ Table ──▶ text, JSON
//! (peers)            (a section) └ Arm = Launch      (random order)  └ every run      └ Target ▶ Verdict
//! ```
//!
//! A *peer* is an allocator. A *cell* is a workload, its *arms* are the processes compared on it, and its
//! *sheet* has their runs.
//!
//! Why the figures can be trusted:
//!
//! - **Separate processes.** A peer is preloaded into a worker (this executable again). No state of one
//!   allocator reaches another's run, and the worker checks that malloc comes from the peer.
//! - **Random interleaving.** All arms of a cell run next to each other in every round, in a new random
//!   order.
//! - **Controls.** glibc and Vellum each have two arms in every cell. Each line prints how far the two
//!   arms of one allocator differ; no smaller difference counts as a result.
//! - **Ratios of medians**, each with a confidence interval from the ratios of the single rounds.
//! - **Fixed work, checked.** Workloads allocate the same under every peer and verify their own results.
//! - **Every run reported.** `--json` has all runs in the order they were made, failed runs with the reason.

pub mod advice;
mod confined;
pub mod gc;
pub mod heap;
/// The allocators to compare.
pub mod peer;
pub mod programs;
mod report;
mod suite;
mod table;
mod target;
pub mod timing;
mod topics;
mod work;

pub use confined::{Asked, Unmeasured};
pub use peer::Roster;
pub use report::{SCHEMA, json};
pub use suite::{Plan, Section, small::checkout};
pub use table::{Judged, Line, Table, Unit};
pub use target::{Against, Judgement, Target, control, judge, twin};
pub use topics::{Peers, Prepared, TOPICS, Topic, chooses, names_section};
pub use vellum_campaign::{Arm, Campaign, Cell, EXPECT, Ended, Launch, Metrics, Missing, Peer, Run, Sheet};
pub use work::{COMMAND, WORKLOADS, Workload, work};
