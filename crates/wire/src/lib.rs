//! Memory layouts and protocols shared between processes.
//!
//! `vellum run` makes one **board**: a file in memory that every process of the job maps. Each process claims
//! one **slot** with a single atomic addition, and keeps its counters there. Watching therefore costs a
//! process one mapping, a forked child only the addition. A killed process's counters remain.
//!
//! ```text
//! board   ┌────────┬────────┬────────┬─ ─ ─┬────────────┐
//!         │ Header │ Slot 0 │ Slot 1 │     │ Slot N - 1 │
//!         └────────┴────────┴────────┴─ ─ ─┴────────────┘
//!           64 B     SLOT_BYTES each
//! ```
//!
//! [`VERSION`] fixes the layout; readers refuse a board with another magic, version or sizes. The meaning of
//! a counter never changes: new counters are appended, and the version is raised. All fields are atomics,
//! written relaxed by one process and read by any. Each counter is read exactly, but not all are read at one
//! instant.
//!
//! A process outside `vellum run` keeps its counters in a private slot. [`ExportedCounters`] has its address,
//! for other processes with permission to read its memory.
//!
//! `vellum cost` makes a **ledger** beside the board. The library that it preloads records every memory
//! operation there, by the place in the program that caused it: see [`cost`].
//!
//! `vellum heap` makes another file, in which processes record what holds their memory, by stack: see
//! [`held`]. Requests to a running process go through a [`door`].
//!
//! A governor and the runtimes of its jobs communicate over a socket: see [`advice`].
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
pub mod log;
pub mod operation;
pub mod script;

pub use board::{
    Attach, BOARD_ENV, Board, Header, MAGIC, SLOT_BYTES, SLOTS_DEFAULT, SLOTS_MAX, Slot, VERSION,
};
pub use counter::{Counter, PAUSE_BUCKETS, SIZE_BUCKETS, pause_bucket, size_bucket, size_bucket_floor};
pub use exported::{ExportedCounters, SYMBOL as COUNTERS_SYMBOL};
