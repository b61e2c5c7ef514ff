//! Processes: started, waited for, watched and sampled; their executables inspected.
//!
//! A **job** is one program, started by us, and every process that descends from it.
//!
//! ```text
//!              Child::spawn ──────────────▶ the program ──fork──▶ its children
//!   Signals ──▶ Child::wait ◀─ wait4 ─────────┘                        │
//!                  │      rusage of everything waited for              │
//!   Sampler ◀──────┼──────────────── /proc/PID/{stat,statm,children} ──┤
//!      │           ▼                                                   │
//!   Series       Ended            BoardFile ◀── one slot a process ────┘
//! ```
//!
//! Three views of the same job, each incomplete:
//!
//! - [`Child`]: what the kernel accounts at the end (times, faults, the largest process). Exact, without
//!   history, and blind to descendants that outlive the program.
//! - [`Sampler`]: what `/proc` shows while the job runs. Has history and sees the whole tree, but only at
//!   moments. Its interval follows the cost of a look, which is at most one part in [`COST_SHARE`] of the
//!   job's CPU time.
//! - [`BoardFile`]: the counters of each process's page layer in shared memory. Exact, and survives a crash,
//!   but exists only for processes with Vellum's library preloaded. [`Image`] finds out beforehand if it can
//!   be.
//!
//! [`Symbols`] has the names of a file's code: functions, source lines, and rules to unwind their frames.
//! [`Undoing`] cleans up for a process that is killed. [`attempt_group`] tests if control groups can be
//! made.
//!
//! Words: the *tree* is the job's processes now. A *sample* is one look at the tree. *Resident* memory is
//! the sum of the processes' resident pages; shared pages count in each process.
//!
//! Nothing here needs privilege. A figure that cannot be read on a machine is an `Option` that is `None`,
//! never a zero.

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
pub use symbols::{
    Function, Standing, Symbols, is_own_library, is_recorder, is_systems_library, is_users_source,
};
pub use tree::{FILES_HELD_MAX, Sample, Seen, Tree};
pub use undoing::Undoing;
pub use vellum_kernel::{Bytes, Pid};
