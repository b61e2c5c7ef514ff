//! Starts, waits for, and samples the processes of a job, and inspects executables.
//!
//! A **job** is a program that we start, with all processes that descend from it.
//!
//! ```text
//!              Child::spawn ──────────────▶ the program ──fork──▶ its children
//!   Signals ──▶ Child::wait ◀─ wait4 ─────────┘                        │
//!                  │      rusage of all children waited for            │
//!   Sampler ◀──────┼──────────────── /proc/PID/{stat,statm,children} ──┤
//!      │           ▼                                                   │
//!   Series       Ended            BoardFile ◀── counters of each ──────┘
//! ```
//!
//! There are three views of a job, each of them incomplete:
//!
//! - [`Child`]: the kernel's counts at the end (times, faults, the largest process). They are exact, have no
//!   history, and lack descendants that outlive the program.
//! - [`Sampler`]: the contents of `/proc` while the job runs. They have history and cover the whole tree,
//!   but only at some moments. The interval between samples is such that they cost at most one part in
//!   [`COST_SHARE`] of the job's CPU time.
//! - [`BoardFile`]: the counters of Vellum's allocator in each process, in shared memory. They are exact and
//!   survive a crash, but need Vellum's library preloaded in the process. [`Image`] finds out beforehand if
//!   that is possible.
//!
//! [`Symbols`] has the names of a file's code: functions, source lines, and rules to unwind their stack
//! frames. [`Undoing`] cleans up after a killed process. [`attempt_group`] tests if cgroups can be made.
//!
//! Words: the *tree* is the job's processes now. A *sample* (or *look*) is one reading of the tree.
//! *Resident* memory is the sum of the processes' resident pages; shared pages count in each process.
//!
//! Nothing here needs privilege. A figure that cannot be read on a machine is `None`, never zero.

mod asked;
mod attempt;
mod board;
mod child;
mod door;
mod image;
mod inherited;
mod interrupt;
mod jit;
pub mod library;
mod locate;
mod names;
mod pace;
#[doc(hidden)]
pub mod readers;
mod sampler;
mod series;
mod signals;
mod symbols;
mod tree;
mod undoing;

pub use asked::{AskError, Asked};
pub use attempt::attempt_group;
pub use board::{BoardError, BoardFile, STALE_PREFIX};
pub use child::{Child, Command, Ended, Meanwhile, Outcome, SpawnError, Usage};
pub use door::{Counters, DoorError};
pub use image::{Image, Obstacle, SCRIPT_DEPTH_MAX};
pub use inherited::{make_children_waitable, named, on_enough_stack};
pub use interrupt::{Interrupt, Told};
pub use jit::{is_jit_map, jit_map};
pub use locate::{LocateError, locate};
pub use names::short_name;
pub use pace::{COST_SHARE, INTERVAL_MAX, INTERVAL_MIN, Pace};
pub use sampler::{Now, Sampled, Sampler, Stranger};
pub use series::{AVERAGE_LOOKS_MIN, POINTS_MAX, Point, Series};
pub use signals::{SignalError, Signals};
pub use symbols::{Function, Standing, Symbols, is_own_library, is_recorder, is_systems_library};
pub use tree::{FILES_HELD_MAX, Sample, Seen, Tree};
pub use undoing::Undoing;
pub use vellum_kernel::{Bytes, Pid};
