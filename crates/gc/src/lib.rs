//! A garbage collector over Vellum's page layer.
//!
//! For programs whose compiler or author cannot say where every pointer is: roots are *ambiguous*, a word on a stack, in a
//! register or in static data that may be a pointer is taken for one. Objects are *typed* (a bitmap says where
//! their pointers are), *untyped* (every word may be one) or *atomic* (none is). The source is Smith and Morrisett 1998.
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
//! A *block* is 16 KiB of objects of one *slot*: one size, one arrangement of pointers. A *run* is a sequence of free objects
//! in a block, handed to a thread whole. *Room* is what may be allocated before the next collection. A *link* is a pointer
//! that becomes null when its object dies (BDW's disappearing link). A *root* is where tracing begins. To *retire* a run is to
//! take back what was not used of it.
//!
//! # What holds
//! * No object has a header: size and sort are its block's, its mark and its allocation bit are in bitmaps apart.
//! * An ambiguous pointer finds its object by a table load and a multiplication, whatever the size.
//! * Allocation takes no lock and no atomic operation within a block.
//! * Memory that is handed out reads zero, unless it is atomic: nothing dead is ever seen by a new object or by the collector.
//! * A collection takes no lock while the world stands still, and allocates nothing; its mark stack is bounded.
//! * Running out of memory is a value. The heap never exceeds its limit, nor all of it together its maximum (`footprint`).
//! * The collector never calls `malloc`, but the C library may when a thread becomes known (`pthread_getattr_np`).
//!
//! # Where things are
//! `class` sizes and slots; `block` descriptors and bitmaps; `space` address to block; `layout` types; `heap` what there
//! is, `sizing` when to collect and how large the regions are until then; `alloc` the ways to an object; `collect` the steps of a collection at one go, `cycle` of one in slices (`budget` how long, `dirty` what was written meanwhile, `sums` whether that misses nothing, `written` looking through it again, `sticky` which marks
//! stay for the next, `idle` when the program waits), both over `roots` (`rooted` what they led to), `stack`, `mark`, `survey`; `parallel` marking by several
//! threads (`crew` its lock-free part, `bytes` its marks); `evacuate`,
//! `movement` and `young` what the mostly-copying plan adds to them, `appel` what generations do; `frames` stacks that are known precisely;
//! `stop` and `thread` the world, `world` what a program may do with it; `finalize`, `disclaim`, `links`, `ephemeron` and `table` the dead; `freed` what users free, `kept` what stays until they do; `footprint` what all of it takes; `vacancy` when free blocks are said to be discardable;
//! `object` everything else a program may ask; `loader` libraries that must not come or go meanwhile; `procedure` what the program's procedures say; `event` what they are told; `idle_thread` a thread for `idle`; `strict` and `validate` the modes for finding errors.
//!
//! # Departures from the source
//! * Its pages become blocks of one size and sort, so that the start of an object needs no walk and its type no header word.
//! * One of the plans moves nothing; another only what is worth it; the third has generations: see [`Plan`], `evacuate` and `appel`.
//! * It collects at two thirds of the heap; here a policy says when, by what is alive and the memory there is (`sizing`).

#![cfg_attr(not(test), no_std)]
// The model checker builds `crew` alone, over its own atomics: see tests/loom.rs.
#![cfg(not(loom))]

mod alloc;
mod appel;
mod block;
mod budget;
mod bytes;
mod class;
mod collect;
mod config;
mod crew;
mod cycle;
mod descriptors;
mod dirty;
mod disclaim;
mod ephemeron;
mod evacuate;
mod event;
mod finalize;
mod footprint;
mod frames;
mod freed;
#[cfg(test)]
mod graph;
mod ground;
mod heap;
mod idle;
mod idle_thread;
mod kept;
mod layout;
mod links;
mod loader;
mod mark;
mod movement;
mod object;
mod parallel;
mod pause;
mod procedure;
mod publish;
mod rooted;
mod roots;
mod sizing;
mod space;
mod stack;
mod start;
mod stats;
mod sticky;
mod stop;
mod strict;
mod sums;
mod survey;
mod table;
mod thread;
mod tls;
mod vacancy;
mod validate;
mod world;
mod written;
mod young;

pub use alloc::{
    FullFn, alloc, alloc_aligned, alloc_array, alloc_atomic, alloc_typed, alloc_typed_inline, collect,
    on_full,
};
pub use budget::give_way;
pub use class::{
    ALIGN_MAX, ATOMIC_FIRST, BLOCK, EXACT_MAX, GRANULE, SLOTS_MAX, SMALL_MAX, TYPED_FIRST, WORD,
};
pub use config::{AfterMajor, Config, Plan};
pub use dirty::{write, wrote};
pub use disclaim::{DisclaimFn, is_marked, set_disclaimer, want};
pub use ephemeron::{ephemeron, set_ephemeron};
pub use event::{EventFn, NeedFn, on_event, on_need};
pub use finalize::{
    Function, Order, due, on_demand as finalize_on_demand, run as finalize, run_all as finalize_all,
    run_unless_within as finalize_unless_within,
};
pub use frames::Frame;
pub use freed::{free, free_later};
pub use idle::{can_slice, idle, step};
pub use kept::{alloc_kept, keep};
pub use layout::{Layout, TYPE_MAX};
pub use links::{link, move_link, unlink};
pub use object::{
    Refused, Sort, add_precise_roots, add_roots, add_thread_roots, base, exclude_roots, hold, include_roots,
    on_image, realloc, remove_roots, set_finalizer, set_least, set_limit, set_max, size, sort, stats,
    validate, walk,
};
pub use pause::{PauseFn, on_pause};
pub use procedure::{RootsFn, ToldFn, TraceFn, Visitor, on_begin, on_due, on_roots};
pub use roots::ImageFn;
pub use sizing::Sizing;
pub use start::{
    Already, active, ask_sizing, ask_strict, blocking, enter, fork_child, fork_parent, fork_prepare, init,
    safepoint, type_by, type_of,
};
pub use stats::Stats;
pub use stop::{set_signal, signal};
pub use strict::Strict;
pub use world::{
    handle, resume, set_stack_end, stack_end_at, start as start_world, stop as stop_world, suspend,
};
