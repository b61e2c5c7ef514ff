//! A pager that runs inside the program's own process.
//!
//! A program too large for its memory, garbage-collected or not, runs ten times slower under the kernel's
//! paging, which treats all pages alike. Here the program pages itself: its blocks are *memory objects*,
//! which share a fixed number of page *frames*, with a file behind them, the *store*. Neither privilege nor a
//! swap device is needed. The source is Cooper, Nettles and Subramanian 1992, section 4. Their *external
//! pager* under Mach has *discardable* pages, which are neither written when they are evicted nor read when
//! they are used again.
//!
//! ```text
//! program ── touches a page ──▶ kernel ── reads it if it is not in memory ──▶ store, mapped into the span
//!    │ marks pages                ▲                                             ▲
//!    │ needed or not              │ delays faults on the store                  │ counts, unmaps, writes
//!    ▼                            │ while the frames are full                   │ and drops pages
//!  bits                         gate (thread) ◀── opens and shuts ────────── evicting thread
//! ```
//!
//! The *span* is the address space of the objects. The store is mapped there, shared, so the kernel answers
//! every fault, of the program and of a system call alike. A thread in user mode decides which pages are
//! evicted, and when.
//!
//! # Words
//! The span is mapped in *steps* of 2 MiB; the *place* of a step is its position in the store. A page of an
//! object is *needed* or *discardable*. A *frame* is a page of the store in memory. A *round* is a run of
//! pages evicted together: unmapped, written, and later dropped unless touched.
//!
//! # Invariants
//! * Every page of every object has room in the store before it is handed out. A full disk is an error of the
//!   allocation, never a fault that cannot be answered.
//! * A page whose `used` bit is clear reads as zero.
//! * The contents of a page are dropped unwritten only while its range is announced and it is discardable
//!   (`bits` explains why no lock is needed).
//! * At most `frames` pages of the store are in memory, apart from those that arrive between two turns of the
//!   evicting thread. From 31/32 of `frames` on, the gate delays page faults.
//!
//! # What the kernel must allow
//! The store must be on a disk's file system that can reserve space (`fallocate`): ext4, xfs, btrfs; not a
//! file system in memory. From Linux 6.5 `cachestat` counts pages; where it is missing or forbidden,
//! `mincore` does, more slowly.
//!
//! # Where things are
//! [`pager`](Pager) has the state and queries; `life` starts and ends it, `uses` makes objects and marks
//! their pages, `mappings` makes objects of the program's mappings, `request` passes requests to the evicting
//! thread, `fork` is for children. `evict` is that thread, with `sweep` (the pages to evict), `ahead`
//! (reading ahead), `gate` and `look` (the pages in memory). `objects`, `bits` and `table` are the records,
//! [`store`] is the file, [`process`] is the pager of a process. `share` follows cgroups and unpaged memory,
//! and [`stats`] counts as the source's tables do.
//!
//! # Departures from the source
//! * The pager chooses which page to replace; under Mach the kernel chose, and the pager wrote the page.
//! * Discardable pages go first: the source's modes "pager only" and pager-initiated flushing are one.
//! * Faults that only fill a page with zeros are the kernel's and are not counted.

// The model checker builds `bits` alone, over its own atomics: see tests/loom.rs.
#![cfg(not(loom))]
#![cfg_attr(not(test), no_std)]

mod bits;
mod evict;
mod objects;
mod pager;
pub mod process;
mod share;
pub mod stats;
pub mod store;
mod table;
mod trouble;
mod units;

pub use pager::mappings::MAPPING_MAX;
pub use pager::{Available, Config, Pager, Refused, StartError};
pub use stats::Counts;
pub use store::FileStore;
pub use units::{FRAMES_MAX, FRAMES_MIN, PAGE, PageNo, SPAN_PAGES};
