//! Vellum's malloc: a general-purpose allocator with a heap for each thread.
//!
//! Small blocks (up to 16 KiB) come from **slabs**: units of 64 KiB with blocks of one size class. Larger
//! blocks are **extents** of the page layer, of whole pages. A thread allocates from its **heap**. It frees a
//! block to the block's slab: directly if the slab is its heap's, else through the slab's **remote list**.
//!
//! ```text
//!   thread ──▶ Heap ──▶ bins ──▶ Slab (side table) ─ ─ ─▶ unit of 64 KiB
//!    (tls)      │                 │      ▲
//!               │ free[class]     │ free │ remote
//!               ▼                 ▼      │
//!             block ▶ block     blocks  other threads' frees
//! ```
//!
//! - `serve` decides which part serves a request on a slow path, and `holder` finds the part that a block
//!   came from. Both depend on the process's mode, which is one word (`mode`).
//! - The pages of a slab on which no block is in use return to the kernel (`vacated`, `scavenge`).
//! - Free blocks are sealed (`seal`): lists cannot be forged, and a second free is found. The hardened mode
//!   finds more misuse (`harden`).
//! - A sampler above this crate may record a block with its stack until it is freed (`sampling`,
//!   `countdown`).
//!
//! This crate never allocates from itself, and never panics on a path that a program can reach. Its records
//! are in free blocks and in a **side table** of units. It touches no page before a block on it is needed.

// The model checker builds `remote` alone, over its own atomics: see tests/loom.rs.
#![cfg(not(loom))]
#![cfg_attr(not(test), no_std)]

mod alloc;
mod arch;
mod background;
mod backoff;
mod backtrace;
mod batch;
mod class;
mod countdown;
mod errno;
mod figures;
mod flush;
mod foreign;
mod forks;
mod gate;
mod gauges;
mod global;
mod harden;
mod heap;
mod holder;
mod hooks;
mod large;
mod lengths;
mod magazine;
mod misuse;
pub mod mmap;
mod mode;
mod modules;
pub mod paged;
mod pass;
mod passthrough;
mod registry;
mod remote;
mod resize;
pub mod sampling;
mod scavenge;
mod seal;
mod serve;
mod slab;
mod small;
mod space;
mod state;
mod threads;
mod tls;
mod units;
mod vacated;
mod validate;

pub use vellum_sys::Line;
pub use {
    alloc::{aligned, calloc, free, free_sized, malloc, usable_size},
    background::{flush_counts, trim},
    batch::{free_batch, malloc_batch, malloc_sizes, realloc_batch},
    errno::{errno, set_errno},
    figures::{Figures, figures},
    forks::{fork_child, fork_parent, fork_prepare},
    gauges::{publish, publish_at_ticks},
    global::Vellum,
    harden::{check_quarantine, harden},
    large::{relocate, swap},
    mode::is_passthrough,
    passthrough::Next,
    resize::{realloc, reallocarray},
    state::DOOR,
    threads::{pass_through, start},
    validate::validate,
};
