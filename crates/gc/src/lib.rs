//! A garbage collector over Vellum's page layer.
//!
//! It is for programs whose compiler or author cannot say where every pointer is. Roots are *ambiguous*: a
//! word on a stack, in a register or in static data that may be a pointer is treated as one. Objects are
//! *typed* (a bitmap says where their pointers are), *untyped* (every word may be one) or *atomic* (none is).
//! The source is Smith and Morrisett 1998.
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
//! | slot | all objects of one size and one arrangement of pointers |
//! | run | a sequence of free objects in a block, handed to a thread whole |
//! | to retire a run | to take back its unused objects |
//! | room | the allocation budget: bytes to hand out before the next collection |
//! | root | a word where tracing begins |
//! | to pin | to keep an object where it is, as an ambiguous pointer leads to it |
//! | link | a pointer that becomes null when its object dies (BDW's disappearing link) |
//! | account | the record of writes to the heap (`write_tracking`) |
//! | cycle | a collection in slices, from its first slice to its end |
//!
//! # What holds
//! * No object has a header: its size and sort are its block's; its mark and its allocation bit are in
//!   bitmaps of the block's descriptor.
//! * An ambiguous pointer finds its object by a table load and a multiplication, whatever the size.
//! * Allocation takes no lock and no atomic operation within a block.
//! * Memory that is handed out reads zero, unless it is atomic: neither a new object nor the collector ever
//!   sees the contents of a dead one.
//! * A collection takes no lock while the world stands still, and allocates nothing; its mark stack is
//!   bounded.
//! * Running out of memory is a value. Blocks and large objects never exceed their limit, nor all of the
//!   heap's memory its maximum (`footprint`).
//! * The collector never calls `malloc`, but the C library may when a thread becomes known
//!   (`pthread_getattr_np`).
//!
//! # Where things are
//! | folder | what it is |
//! | --- | --- |
//! | `plan` | how a heap is collected: mark-sweep, mostly-copying, generations |
//! | `space` | blocks, descriptors, size classes, address to block |
//! | `trace` | marking, roots, stacks and frames, several markers |
//! | `write_tracking` | which parts of the heap were written to since they were traced |
//! | `mutator` | threads, allocation, stopping the world, idle time |
//! | `death` | finalizers, links, ephemerons, disclaimers, objects that stay until they are freed |
//! | `sizing` | when to collect, how large the regions are, the footprint |
//! | `debug` | checks; nothing of it is on a path of allocation when it is off |
//! | `interface` | the functions that a program may call |
//!
//! Beside them, `heap` has the parts of a heap, `config` a user's settings; `event`, `statistics` and
//! `publish` report to others.
//!
//! # Departures from the source
//! * Its pages become blocks of one size and sort, so that finding the start of an object needs no walk, and
//!   its type needs no header word.
//! * One of the plans moves nothing, another sparse blocks only; the third has generations: see [`Plan`],
//!   `evacuation` and `appel`.
//! * It collects at two thirds of the heap. Here a policy decides when, by the live bytes and the memory
//!   available (`sizing`).

#![cfg_attr(not(test), no_std)]
// The model checker builds `work_packets` alone, over its own atomics: see tests/loom.rs.
#![cfg(not(loom))]

mod config;
mod death;
mod debug;
mod event;
mod heap;
mod hook;
mod interface;
mod mutator;
mod plan;
mod publish;
mod sizing;
mod space;
mod statistics;
mod trace;
mod write_tracking;

pub use config::{AfterMajor, Config, PlanName as Plan};
pub use death::disclaim::DisclaimFn;
pub use death::finalizers::{Function, Order};
pub use death::run::{
    due, on_demand as finalize_on_demand, run as finalize, run_all as finalize_all,
    run_unless_within as finalize_unless_within,
};
pub use death::samples::{Sampler, Token, sample};
pub use debug::checks::Strict;
pub use event::{EventFn, NeedFn, on_event, on_need};
pub use interface::disclaimers::{is_marked, set_disclaimer, want};
pub use interface::ephemerons::{ephemeron, set_ephemeron};
pub use interface::explicit_free::{free, free_later};
pub use interface::finalizers::set_finalizer;
pub use interface::links::{link, move_link, unlink};
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
pub use interface::uncollectable::{alloc_kept, keep};
pub use mutator::access::Refused;
pub use mutator::alloc::{
    FullFn, alloc, alloc_aligned, alloc_array, alloc_atomic, alloc_typed, alloc_typed_inline, on_full,
};
pub use mutator::budget::give_way;
pub use mutator::collect::collect;
pub use mutator::idle::{can_slice, idle, step};
pub use mutator::stop::{set_signal, signal};
pub use plan::pause::{PauseFn, on_pause};
pub use sizing::choice::Sizing;
pub use space::layout::{Layout, TYPE_MAX};
pub use space::size_class::{
    ALIGN_MAX, ATOMIC_FIRST, BLOCK, EXACT_MAX, GRANULE, SLOTS_MAX, SMALL_MAX, TYPED_FIRST, WORD,
};
pub use statistics::Stats;
pub use trace::callbacks::{RootsFn, ToldFn, on_begin, on_due, on_roots};
pub use trace::frames::Frame;
pub use trace::parallel::{are_absent as are_helpers_absent, bar as bar_helpers, unbar as unbar_helpers};
pub use trace::roots::ImageFn;
pub use trace::visitor::{TraceFn, Visitor};
pub use write_tracking::cards::{write, wrote};
