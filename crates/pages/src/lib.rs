//! The user-mode page allocator: keeps the frames of freed blocks, and hands them out again without faults.
//!
//! At the first touch of a page, the kernel finds a frame and clears it, which takes thousands of cycles.
//! Each `munmap` throws that work away. This layer keeps the frames of a process, and hands them out again
//! without clearing: they contain only the process's own old data. Address space is plentiful, so blocks have
//! room to grow. Large blocks are moved by changing page tables. The source is Douglas 2011, sections 4.2 and
//! 4.2.1. Douglas needed a kernel that gives each process its page tables; here `MADV_FREE`, `mremap` and
//! `UFFDIO_MOVE` serve.
//!
//! ```text
//!                      ┌──────────────── flush ───────────────┐
//!                      │                                      ▼
//! ┌──────┐   free   ┌──┴───┐    mark    ┌────────┐  flush  ┌──────┐     boxes: the states of an extent
//! │ used │ ───────▶ │ warm │ ─────────▶ │ marked │ ──────▶ │ cold │     arrows: operations
//! └──────┘          └──────┘            └────────┘         └──────┘
//!    ▲                 │                    │                 │
//!    └───── alloc ─────┴────────────────────┴─────────────────┘
//! ```
//!
//! Pages of a block that have no frames turn cold when the block is freed. Cold pages that are handed out get
//! frames at the first touch, by page faults.
//!
//! # Words
//! An *extent* is a run of whole pages in one state; a *block* is an extent in use. Free extents are *warm*
//! (with frames), *marked* (discardable by `MADV_FREE`) or *cold* (no frames, reads as zeros). The *cache* is
//! all warm extents. To *flush* is to return frames to the kernel now: after the decay time, to limit the
//! peak, or for `malloc_trim`. To *mark* is to let the kernel take frames when it must. *Headroom* is the
//! memory left below a limit.
//!
//! # Promises
//! * The cache raises a process's peak by at most 1/64, or 2 MiB for small processes (see `resident`). Cached
//!   extents are marked when a limit's headroom is below the cache. They are flushed when no request has
//!   needed them for the decay time.
//! * Functions that run out of memory return an error, and so do those that detect a [`Misuse`].
//! * The number of map entries (VMAs) does not grow with the blocks. Windows for huge pages use at most 64,
//!   and moves that the kernel can only do with `mremap` at most 256.
//! * The layer never calls `malloc`, uses no thread-local storage, and survives `fork` at any moment in a
//!   threaded process. For this, the program calls [`Pages::fork_prepare`] and its counterparts.
//!
//! | files | contents |
//! | --- | --- |
//! | [`pages`](Pages), `find_pages`, `free_extent`, `relocate` | the operations on blocks |
//! | `arena`, `tag`, `bins`, `state`, `walk` | extents, their records by page and by size, the lock |
//! | `resident`, `elsewhere`, `survey`, `available` | the accounts of memory, and the rule of the peak |
//! | `fill_from_cache`, `release`, `discard`, `vacant` | cached frames, and their return to the kernel |
//! | `inside`, `holes`, `tables` | frames returned inside units in use, and those of this layer's tables |
//! | `huge_window`, `huge_price`, `scan_backoff` | decisions on huge pages |
//! | `mappings`, `annex`, `accounted`, `dumps` | the program's mappings, a pager's space, core dumps |
//! | `helper`, `decay_clock`, `rest`, `advice` | the background thread, and a governor's advice |

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
