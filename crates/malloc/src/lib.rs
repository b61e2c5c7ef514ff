//! Vellum's malloc.
//!
//! Small blocks (up to 16 KiB) come from **slabs**, 64 KiB units of one size class each; larger ones are **extents** of the
//! page layer, exact to the page. A thread allocates from its **heap** and frees to the slab a block belongs to,
//! by itself when the slab is its heap's, through the slab's **remote list** when it is another's.
//!
//! ```text
//!   thread ──▶ Heap ──▶ bins ──▶ Slab (side table) ─ ─ ─▶ unit of 64 KiB
//!    (tls)      │                 │      ▲
//!               │ free[class]     │ free │ remote
//!               ▼                 ▼      │
//!             block ▶ block     blocks  other threads' frees
//! ```
//!
//! Rules of this crate: it never allocates from itself, never panics on a path a program can reach, keeps no
//! bookkeeping inside blocks in use or in units, and touches no page before a block on it is needed.

// The model checker builds `remote` alone, over its own atomics: see tests/loom.rs.
#![cfg(not(loom))]
#![cfg_attr(not(test), no_std)]

mod align;
mod alloc;
mod aside;
mod batch;
mod class;
mod foreign;
mod gate;
mod global;
mod heap;
mod large;
mod misuse;
pub mod mmap;
pub mod paged;
mod registry;
mod remote;
mod resize;
mod slab;
mod space;
mod steward;
mod tls;
mod validate;

pub use vellum_sys::Line;
pub use {
    align::aligned,
    alloc::{calloc, errno, free, malloc, set_errno, usable_size},
    aside::{Next, is_aside, stand_aside},
    batch::{free_batch, malloc_batch, malloc_sizes, realloc_batch},
    global::Vellum,
    large::{relocate, swap},
    resize::{realloc, reallocarray},
    steward::{flush_counts, fork_child, fork_parent, fork_prepare, start, trim},
    validate::validate,
};
