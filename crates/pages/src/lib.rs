//! The user-mode page allocator.
//!
//! Memory arrives from the kernel by faults. Each first touch of a page enters the kernel, which finds a
//! frame and clears it, in thousands of cycles, and each `munmap` throws that work away. This layer keeps the
//! frames of a process, and hands them out again without a fault and without clearing: they hold nothing but
//! the process's own old data. Address space is plenty, so blocks have room to grow, and what must move is
//! moved by its page tables. The source is Douglas 2011, sections 4.2 and 4.2.1. He needed a kernel that
//! gives each process its page tables; here `MADV_FREE`, `mremap` and `UFFDIO_MOVE` serve.
//!
//! ```text
//!            alloc ◀────────────── warm ◀──────────── free
//!              ▲        (frames kept, uncleared)       ▲
//!              │                    │ headroom short   │
//!   faults     │                    ▼                  │
//!   ───────▶  used ◀──────────── marked                │
//!              ▲          (discardable: MADV_FREE)     │
//!              │                    │ flush            │
//!              └───────────────── cold ◀── decay, peak, trim
//!                          (no frames, reads zero)
//! ```
//!
//! # Words
//! An *extent* is a run of whole pages in one state; a *block* is an extent in use. *Warm*, *marked* and
//! *cold* are the states of free extents. The *cache* is the warm extents. To *flush* is to give frames back
//! now, to *mark* is to let the kernel take them when it must.
//!
//! # Promises
//! * The cache never raises a process's peak by more than 1/64 of it or 2 MiB (`resident` has the rule). It
//!   is unmarked only while every limit's headroom exceeds it, and decays when it is not needed.
//! * Out of memory is a value. Misuse is one, too: see [`Misuse`].
//! * No map entry (VMA) is spent a block. Entries are spent by windows (at most 64) and by moves that the
//!   kernel can only do with `mremap` (at most 256).
//! * The layer allocates nothing from `malloc`, uses no thread-local storage, and survives `fork` at any
//!   moment in a threaded process, if the program calls [`Pages::fork_prepare`] and its fellows.
//!
//! # Where things are
//! [`pages`](Pages) has the operations, over `find_pages` and `free_extent`. `arena` places, splits and joins
//! extents, over `tag` (records by page) and `bins` (free extents by size); `state` is all the lock guards.
//! `resident` accounts for resident memory and has the rule of the peak, with `elsewhere` for the program's
//! mappings from the kernel; `survey` finds the resident part of a freed block. `fill_from_cache` moves
//! cached frames to cold memory, `release` gives frames back, `discard` has the modes, `vacant` the vacated
//! runs. `inside` (over `holes`) gives back pages of units in use, `tables` those of tables. `huge_window`
//! decides on huge pages, by `huge_price`, and `scan_backoff` times its scans. `relocate` moves blocks,
//! `mappings` follows the program's own mappings, `annex` lends address space to a pager, `walk` counts.
//! `accounted` and `dumps` map and dump less. `helper` is the background thread, with `decay_clock` and
//! `rest`; `advice` follows a governor, `available` reads limits; [`Buffer`] is a growable vector.

#![cfg_attr(not(test), no_std)]

mod accounted;
mod advice;
mod annex;
mod arena;
mod available;
mod bins;
mod buffer;
mod config;
mod decay_clock;
mod discard;
mod dumps;
mod elsewhere;
mod error;
mod fill_from_cache;
mod find_pages;
mod free_extent;
mod helper;
mod holes;
mod huge_price;
mod huge_window;
mod inside;
mod low_water;
mod mappings;
mod pages;
mod reason;
mod release;
mod relocate;
mod resident;
mod rest;
mod scan_backoff;
mod shortage;
mod state;
mod suited;
mod survey;
mod tables;
mod tag;
mod units;
mod untouched;
mod vacant;
mod walk;

pub use available::AvailableMemory;
pub use buffer::{Buffer, Plain};
pub use config::{Config, Discard, HugePolicy, Severity};
pub use discard::Elsewhere;
pub use error::{Misuse, OutOfMemory};
pub use mappings::{Owner, Unclaimed};
pub use pages::{Extent, Pages, Request};
pub use suited::is_suited;
pub use units::{
    ALIGN_MAX, ANNEX_BYTES, ANNEX_UNITS, BLOCK_MAX, DENSE_MIN, HUGE, LARGE_MIN, MOVE_MIN, PAGE, UNIT,
    UNIT_SIDE, round_up,
};
