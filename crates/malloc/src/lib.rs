//! Vellum's malloc.
//!
//! Small blocks (up to 16 KiB) come from **slabs**, 64 KiB units of one size class each; larger ones are
//! **extents** of the page layer, exact to the page. A thread allocates from its **heap** and frees to the
//! slab a block belongs to, by itself when the slab is its heap's, through the slab's **remote list** when it
//! is another's.
//!
//! ```text
//!   thread ──▶ Heap ──▶ bins ──▶ Slab (side table) ─ ─ ─▶ unit of 64 KiB
//!    (tls)      │                 │      ▲
//!               │ free[class]     │ free │ remote
//!               ▼                 ▼      │
//!             block ▶ block     blocks  other threads' frees
//! ```
//!
//! A slab with a block in use gives back the pages on which there is none (`vacated`, `scavenge`).
//!
//! A sampler above this crate may record a block with its stack until it is freed (`sampling`, `countdown`).
//!
//! A free block is sealed (`seal`), so that lists cannot be forged and a block freed twice shows. The
//! hardened mode is in `harden`.
//!
//! Rules of this crate: it never allocates from itself, never panics on a path a program can reach, keeps no
//! bookkeeping inside blocks in use or in units, and touches no page before a block on it is needed.

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
