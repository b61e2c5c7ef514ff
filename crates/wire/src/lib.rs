//! What crosses a process boundary.
//!
//! `vellum run` makes one **board**: a file in memory that every process of the job maps. Each process claims
//! one **slot** of it with a single atomic addition and keeps its counters there, so a process costs no
//! system call for being watched beyond the one mapping, a forked child only the addition, and a process that
//! is killed leaves its last counters behind for the report.
//!
//! ```text
//! board   ┌────────┬────────┬────────┬─ ─ ─┬────────────┐
//!         │ Header │ Slot 0 │ Slot 1 │     │ Slot N - 1 │
//!         └────────┴────────┴────────┴─ ─ ─┴────────────┘
//!           64 B     SLOT_BYTES each
//! ```
//!
//! The layout is fixed by [`VERSION`]; a reader refuses a board whose magic, version or sizes it does not
//! know. A counter's meaning never changes: a new one is appended and the version raised. All fields are
//! atomics, written relaxed by one process and read by any: a reader sees each counter exact, though not all
//! of one instant.
//!
//! A process that nobody started so keeps its counters in a slot of its own, and [`ExportedCounters`] says
//! where: another process that may look into its memory finds them there.
//!
//! `vellum cost` makes a **ledger** beside the board, in which the library it preloads records every memory
//! operation by the place in the program that caused it: see [`cost`].
//!
//! `vellum heap` makes a file of another kind, in which processes keep what holds their memory, by stack: see
//! [`held`]. A process that runs already is asked through a [`door`].
//!
//! A governor and the runtimes of its jobs talk over a socket: see [`advice`].
//!
//! The structures of the collector's C interface are in [`interface`].

#![no_std]

pub mod advice;
mod board;
pub mod cost;
mod counter;
pub mod door;
mod exported;
pub mod held;
pub mod interface;
pub mod operation;
pub mod script;

pub use board::{
    Attach, BOARD_ENV, Board, Header, MAGIC, SLOT_BYTES, SLOTS_DEFAULT, SLOTS_MAX, Slot, VERSION,
};
pub use counter::{Counter, PAUSE_BUCKETS, SIZE_BUCKETS, pause_bucket, size_bucket, size_bucket_floor};
pub use exported::{ExportedCounters, SYMBOL as COUNTERS_SYMBOL};
