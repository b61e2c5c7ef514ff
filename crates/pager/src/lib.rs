//! Vellum's own pager.
//!
//! A program, or the collector of its language, that does not fit the memory it may use is slowed ten times
//! by the kernel's paging, which knows nothing of what the pages hold. Here the program pages itself: its
//! blocks are *memory objects* that together get a fixed number of page *frames*, with a file behind them,
//! the *store*. Neither privilege nor a swap device is needed. The source is Cooper, Nettles and Subramanian
//! 1992, section 4, whose *external pager* under Mach knew which pages are *discardable*: those are neither
//! written when they go nor read when they come back.
//!
//! ```text
//!   program ── touches a page ──▶ kernel ── reads it, if it is not in memory ──▶ store, mapped into the span
//!      │                            ▲                                              ▲
//!      │ marks pages                │ holds faults of the store while              │ counts, unmaps, writes,
//! program ── touches a page ──▶ kernel ── reads it, if it is not in memory ──▶ store, mapped into the span
//!   bits ─────────────────────▶  gate (thread) ◀──────── opens and shuts ── evicting thread
//! ```
//!
//! The store is mapped, shared, where the objects are. So the kernel answers every fault, of the program and
//! of a system call alike, and no code of ours is on the path of a fault. Which pages leave, and when, is
//! decided in user mode by one thread.
//!
//! # Words
//! The span is mapped in *steps* of 2 MiB; where in the store a step lies is its *place*. A page of an object
//! is *needed* or *discardable*. A *frame* is a page of the store in memory. A *round* is a run of pages that
//! leaves together: it is unmapped, written, and later dropped from memory unless the program has touched it
//! again.
//!
//! # Invariants
//! * Every page of every object has room in the store before it is handed out: a full disk is an error when
//!   memory is asked for, never a fault that cannot be answered.
//! * A page whose `used` bit is clear reads as zero.
//! * The contents of a page are dropped unwritten only while its range is announced and it is discardable
//!   (`bits` says why no lock is needed).
//! * At most `frames` pages of the store are in memory, but for what arrives between two looks of the
//!   evicting thread: it looks each millisecond while pages arrive, and the gate holds faults when 31/32 are
//!   reached.
//!
//! # What the kernel must allow
//! A file system on a disk that can set room aside (`fallocate`): ext4, xfs, btrfs; not one in memory. From
//! Linux 6.5 `cachestat` counts pages; where it is missing or forbidden, `mincore` does, more slowly.
//!
//! # Where things are [`pager`](Pager) is what a program calls; `life` starts and ends it, `uses` makes
//! objects and says of their pages whether they are needed, `mappings` are objects that are the program's
//! mappings, `request` asks the evicting thread, `fork` is for children. `evict` is that thread, with `sweep`
//! (what leaves), `ahead` (what is read before it is asked for), `gate` and `look` (what is in memory).
//! `objects`, `bits` and `table` are the records, [`store`] is the file, `share` follows control groups and
//! memory that is not paged, [`process`] is the one pager of a process, [`stats`] counts as the source's
//! tables do.
//!
//! # Departures from the source
//! * The pager chooses what to replace; under Mach the kernel did, and the pager carried it out.
//! * Discardable pages go before all others when frames are needed: the source's "pager only" and its
//!   pager-initiated flushing are one.
//! * Zero-filled faults are the kernel's and are not counted.

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
