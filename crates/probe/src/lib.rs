//! Measurement that touches the machine.
//!
//! `vellum-measure` thinks about numbers; this crate goes and gets them. It watches a **job**: one program, started
//! by us, and every process that descends from it.
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
//! Three views of the same job, because none of them sees everything:
//!
//! - [`Child`]: what the kernel accounts at the end (times, faults, the largest process). Exact, without history, and
//!   blind to descendants that outlive the program.
//! - [`Sampler`]: what `/proc` shows while the job runs. Has history and sees the whole tree, but only at moments;
//!   its pace is set by what a look costs, never above one part in [`COST_SHARE`] of what the job itself computes.
//! - [`BoardFile`]: what each process's page layer says about itself in shared memory. Exact, survives a crash, but
//!   only there for processes that Vellum's library could enter; [`Image`] says beforehand which can.
//!
//! Apart from that stands the [`campaign`]: many processes compared with each other, in random order, round after round.
//!
//! # Timing
//!
//! Beside watching a job from outside stands timing from inside, from the bottom up:
//!
//! ```text
//! clock ─▶ Base            what a stamp is, what it costs, how fine it is
//!   └▶ record::Recorder    one thing, many observations, each with what else happened inside it ─▶ measure::Series
//!        ├▶ bench::Suite   many things in one process ([`suites`]: those that come with Vellum)
//!        └▶ duel           two things in one process, by turns in random order, with a control ─▶ measure::Comparison
//!   └▶ process_duel        two programs, process by process, likewise
//! marks                    where a collector or an allocator says what it did, and is asked to wait
//! profile                  the second look: where a region's time went, by symbol
//! machine                  what all of it was measured on
//! ```
//!
//! # Working sets
//!
//! [`reference`](mod@reference) says which pages a running job has referenced lately, and makes working-set curves of that.
//!
//! [`generations`] reads, ages and evicts what the kernel's own page replacement knows of a control group.
//!
//! [`confine`] makes memory short for an experiment, and takes nothing of the machine's own for it.
//!
//! One rule holds for all of it: between two stamps there is the operation and nothing else, and what is kept goes into memory
//! that is there already.
//!
//! Words: a *job* is the program and its descendants; the *tree* is the job's processes now; a *sample* is one look at
//! the tree; *resident* memory is the sum of the processes' resident pages, shared pages counted in each.
//!
//! Nothing here but [`confine`], [`generations`] and some sources of references needs privilege. What cannot be read on a machine is an `Option` that is `None`, never a zero.

mod arms;
pub mod bench;
mod board;
mod bytes;
pub mod campaign;
mod child;
pub mod clock;
pub mod confine;
pub mod cost;
mod door;
pub mod duel;
pub mod generations;
mod image;
mod inherited;
mod interrupt;
mod locate;
pub mod machine;
pub mod marks;
mod pace;
mod process;
pub mod process_duel;
pub mod procfs;
pub mod profile;
pub mod record;
pub mod reference;
mod ring;
mod sampler;
mod series;
mod signals;
pub mod suites;
mod tree;

pub use arms::{ARMS, ArmOrder};
pub use board::{BoardError, BoardFile, STALE_PREFIX};
pub use bytes::Bytes;
pub use child::{Child, Command, Ended, Meanwhile, Outcome, SpawnError, Usage};
pub use door::{Counters, DoorError};
pub use image::{Image, Obstacle, SCRIPT_DEPTH_MAX};
pub use interrupt::Interrupt;
pub use locate::{LocateError, locate};
pub use pace::{COST_SHARE, INTERVAL_MAX, INTERVAL_MIN, Pace};
pub use process::{Pid, Stat, Used};
pub use sampler::{Now, Sampled, Sampler, Stranger};
pub use series::{AVERAGE_LOOKS_MIN, POINTS_MAX, Point, Series};
pub use signals::{SignalError, Signals};
pub use tree::{FILES_HELD_MAX, Look, Seen, Tree};
