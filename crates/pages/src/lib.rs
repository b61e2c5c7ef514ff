//! The user-mode page allocator.
//!
//! Memory arrives from the kernel by faults. Each first touch of a page enters the kernel, which finds a
//! frame and clears it, some thousand cycles a page, and each `munmap` throws that work away. This layer
//! keeps the frames of a process, and hands them out again without a fault and without clearing: they hold
//! nothing but the process's own old data. Address space is plenty, so blocks have room to grow, and what
//! must move is moved by its page tables. The source is Douglas 2011, sections 4.2 and 4.2.1. He needed a
//! kernel that gives each process its page tables; here `MADV_FREE`, `mremap` and `UFFDIO_MOVE` serve.
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
//! # Where things are [`pages`](Pages) has the operations, over `find_pages` and `free_extent`; `arena`
//! places, splits and joins, over `tag` (what each page is) and `bins` (what is free, by size); `state`
//! is what the lock guards; `fill_from_cache` moves cached frames to where they are needed; `resident`
//! keeps the account of resident memory, and the rule of the peak; `survey` finds what of a freed block
//! is resident; `release` gives frames back, `discard` says in which mode, `vacant` what of used memory
//! is vacated; `inside` (over `holes`) gives back pages of units in use, `tables` those of tables;
//! `walk` finds what is handed out for those who count; `huge_window` decides on huge pages,
//! `huge_price` whether they are cheap, `scan_backoff` how soon windows are scanned again; `relocate`
//! moves; `mappings` follows what the program does to its own mappings, `elsewhere` hears what it maps
//! from the kernel; `annex` lends address space to a pager; `accounted` maps less where that counts;
//! `dumps` keeps core dumps small; `helper` is the background, by the ticks of `decay_clock`, and is
//! away for a `rest` when the process forks; `advice` follows a governor; `available` says what memory
//! there is; [`Buffer`] is the growable vector built on it all.

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
pub use config::{Config, HugePolicy, Severity};
pub use discard::{Discard, Elsewhere};
pub use error::{Misuse, OutOfMemory};
pub use mappings::{Owner, Unclaimed};
pub use pages::{Extent, Pages, Request};
pub use suited::is_suited;
pub use units::{
    ALIGN_MAX, ANNEX_BYTES, ANNEX_UNITS, BLOCK_MAX, DENSE_MIN, HUGE, LARGE_MIN, MOVE_MIN, PAGE, UNIT,
    UNIT_SIDE, round_up,
};
