//! A garbage collector, which takes its memory from Vellum's page layer (`vellum_pages`).
//!
//! It serves programs, such as those in C, whose pointers cannot all be located. Roots are *ambiguous*: a
//! word on a stack, in a register or in static data that may be a pointer is treated as one. Objects are
//! *typed* (a bitmap locates their pointers), *untyped* (every word may be a pointer) or *atomic* (no word
//! is); this is an object's *sort*. The source is Smith and Morrisett 1998. The drawing's words are
//! explained below it.
//!
//! ```text
//!  program      vel_gc_alloc (inline): next += size ────────────┐ run of free objects, per thread and slot
//!                                                               │
//!  alloc        the block's next run ◀── a block with room ◀── a free block ◀── collect ◀── pages
//!                    │ bitmap               │ slot's list         │ pool
//!  address table: address >> 14 ─▶ descriptor: size, reciprocal, sort │ marks and allocation bits
//! ```
//!
//! # Words
//! | word | meaning |
//! | --- | --- |
//! | block | 16 KiB of objects of one slot |
//! | slot | all objects of one size and one arrangement of pointers; also the number of this set |
//! | run | a sequence of free objects in a block, handed to a thread as one |
//! | to retire a run | to take back its unused objects |
//! | room | of a heap: the bytes to hand out before the next collection; of a block: its free objects |
//! | root | a word outside the heap where tracing begins |
//! | to pin | to keep an object at its address, as an ambiguous pointer leads to it |
//! | link | a pointer that becomes null when its object dies (libgc's disappearing link) |
//! | account | the record of writes to the heap (`write_tracking`) |
//! | cycle | a collection in slices, from its first slice to its end |
//!
//! # What holds
//! * No object has a header. The block's descriptor has the size and sort of its objects, and bitmaps of
//!   their marks and allocation bits.
//! * A table load and a multiplication lead from an ambiguous pointer to its object of any size.
//! * Allocation within a block takes no lock and no atomic operation.
//! * Memory that is handed out is zero, unless it is for an atomic object. A program never reads a dead
//!   typed or untyped object's contents.
//! * A collection takes no lock and allocates nothing while the world stands still.
//! * Functions that run out of memory return an error. Blocks and large objects never exceed their limit,
//!   and all of the heap's memory never exceeds its maximum (`footprint`).
//! * The collector never calls `malloc`, but the C library may when a thread is registered
//!   (`pthread_getattr_np`).
//!
//! ARCHITECTURE.md lists the folders of this crate, lowest first.
//!
//! # Departures from the source
//! * The source's pages become blocks of objects of one size and sort. The start of an object is found
//!   without a walk, and its type needs no header word.
//! * There are three plans (ways to collect). One moves nothing, one empties sparse blocks, and one has
//!   generations: see [`Plan`], `evacuation` and `appel`.
//! * The source collects when two thirds of the heap are in use. Here a policy decides when, by the live
//!   bytes and the memory available (`sizing`).

#![cfg_attr(not(test), no_std)]
// The model checker builds `work_packets` alone, over its own atomics: see tests/loom.rs.
#![cfg(not(loom))]

mod config;
mod death;
mod heap;
mod instance;
mod interface;
mod mutator;
mod observer;
mod plan;
mod process;
mod sizing;
mod space;
mod trace;
mod world;
mod write_tracking;

pub use config::sizing::Sizing;
pub use config::strict::Strict;
pub use config::{AfterMajor, Config, PlanName as Plan};
pub use death::disclaim::DisclaimFn;
pub use death::finalizers::{Function, Order};
pub use death::samples::Token;
pub use heap::statistics::Stats;
pub use interface::deaths::{
    ephemeron, is_marked, link, move_link, set_disclaimer, set_ephemeron, set_finalizer, unlink, want,
};
pub use interface::kept::{alloc_kept, free, free_later, keep};
pub use interface::objects::{Sort, base, realloc, size, sort, stats, validate, walk};
pub use interface::roots::{
    add_precise_roots, add_roots, add_thread_roots, exclude_roots, include_roots, on_image, remove_roots,
};
pub use interface::settings::{forgo_tracking, hold, set_least, set_limit, set_max};
pub use interface::start::{
    Already, active, ask_sizing, ask_strict, blocking, enter, fork_child, fork_parent, fork_prepare, init,
    safepoint, type_by, type_of,
};
pub use interface::stop_the_world::{
    handle, resume, set_stack_end, stack_end_at, start as start_world, stop as stop_world, suspend,
};
pub use mutator::access::Refused;
pub use mutator::alloc::{alloc, alloc_aligned, alloc_array, alloc_atomic, alloc_typed, alloc_typed_inline};
pub use mutator::collect::collect;
pub use mutator::idle::{can_slice, give_way, idle, step};
pub use mutator::run::{
    due, on_demand as finalize_on_demand, run as finalize, run_all as finalize_all,
    run_unless_within as finalize_unless_within,
};
pub use mutator::sampling::sample;
pub use observer::sampling::Sampler;
pub use process::cards::{write, wrote};
pub use process::frames::Frame;
pub use process::helpers::{are_absent as are_helpers_absent, bar as bar_helpers, unbar as unbar_helpers};
pub use process::hooks::{
    EventFn, FullFn, ImageFn, NeedFn, PauseFn, RootsFn, ToldFn, on_begin, on_due, on_event, on_full, on_need,
    on_pause, on_roots,
};
pub use process::signal::{set_signal, signal};
pub use process::visitor::{TraceFn, Visitor};
pub use space::layout::{Layout, TYPE_MAX};
pub use space::size_class::{
    ALIGN_MAX, ATOMIC_FIRST, BLOCK, EXACT_MAX, GRANULE, SLOTS_MAX, SMALL_MAX, TYPED_FIRST, WORD,
};
