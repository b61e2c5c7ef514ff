//! Vellum's own pager.
//!
//! A program, or the collector of its language, that does not fit the memory it may use is slowed ten times
//! by the kernel's paging, which knows nothing of what the pages hold. Here the program pages itself: its big
//! blocks are *memory objects* that together get a fixed number of page *frames*, with a file behind them,
//! the *store*. Neither privilege nor a swap device is needed. The source is Cooper, Nettles and Subramanian
//! 1992, section 4, whose *external pager* under Mach knew which pages are *discardable*: those are neither
//! written when they go nor read when they come back.
//!
//! ```text
//!   program ── touches a missing page ──▶ kernel ── userfaultfd ──▶ answer (thread) ── reads ──▶ store
//!      ▲                                                              │   ▲                       ▲
//!      │                                 frames change places         │   │ room: what to replace │
//!      └──────────────────────────────────────────────────────────────┘   ▼                       │
//!                           span of objects ◀──── exchange ────▶ pool of frames ── writer (thread)┤
//!                                                                              ◀── readers (threads)
//! ```
//!
//! # Words
//! A *frame* is a page of memory; there are `frames` of them (as asked, or as the limits on the process
//! allow), mapped at a page of an object, or kept in the *pool*: free, or *held* for a page that has been
//! taken from its address to see whether anybody asks for it. A *place* is where the pool keeps a frame, a
//! *slot* where the store keeps a page. A page that has no contents reads as zero (*fresh*) or as anything
//! (*vague*).
//!
//! # Invariants
//! * Mapped, held and free frames and the memory of compressed pages are `frames` together, always
//!   ([`Pager::validate`]).
//! * A page's contents are in one place that counts: its frame if it has one, else its compressed copy and
//!   its slot, which hold the same if there are both. A held page can be reached by nobody.
//! * Every page of every object has room in the store before it is handed out.
//! * A page that comes back has the checksum with which it went, or the program is stopped.
//! * What is marked discardable when its frame is given up, after it was taken away, is not needed (`marks`
//!   says why no lock is).
//!
//! # What the kernel must allow
//! `userfaultfd`, for user mode only if there is no privilege: then a system call that meets a missing page
//! fails with `EFAULT`, and a library that preloads the pager under programs passes their buffers on through
//! memory of its own ([`Pager::reach`] says which it is). From Linux 6.8 frames move; before, pages are
//! copied. A forked child gets no faults answered: [`Pager::fork_prepare`] and its fellows give it
//! everything, and a child made behind their back finds no memory there at all.
//!
//! # Where things are
//! [`pager`](Pager) is what a program calls, `answer` what happens at a fault, `room` what is given up,
//! `writer` what is written; `inner` is what the lock guards, `entry` how a program's thread takes it, over
//! `record` (a page), `pool`, `objects`, `bits` and `table`; [`policy`] chooses what to replace, `streams`
//! sees who goes through memory in order, `reader` reads ahead of them, `neighbours` learns what it pays to
//! bring for others; `exchange` moves frames, [`store`] keeps pages, `tier` has some in memory, compressed,
//! over `behind` (the writer's part) and `unpack` (the answerer's), `checksum` knows pages again, `marks`
//! says which nobody needs; `share` follows the limits of control groups; [`process`] is the one pager that a
//! process has; [`stats`] counts as the source's tables do, `waits` what paging costs; `fork` is for
//! children.
//!
//! # Departures from the source
//! * The pager chooses what to replace; under Mach the kernel did, and the pager carried it out.
//! * A discardable page that is touched is given an old frame of the process's own, uncleared: what section 8
//!   wished for.
//! * Flushed frames go back to the pool, not to the kernel.

// The model checker builds `marks` alone, over its own atomics: see tests/loom.rs.
#![cfg(not(loom))]
#![cfg_attr(not(test), no_std)]

mod answer;
mod behind;
mod bits;
mod checksum;
mod entry;
mod exchange;
mod fork;
mod inner;
mod marks;
mod neighbours;
mod objects;
mod pager;
pub mod policy;
mod pool;
pub mod process;
mod reader;
mod record;
mod room;
mod share;
pub mod stats;
pub mod store;
mod streams;
mod table;
mod tier;
mod trouble;
mod units;
mod unpack;
mod waits;
mod writer;

pub use pager::mappings::MAPPING_MAX;
pub use pager::{Config, Pager, Refused, StartError};
pub use policy::Choice;
pub use stats::Event;
pub use store::{Backing, FileStore};
pub use tier::COMPRESSED_PERCENT_MAX;
pub use units::{FRAMES_MAX, FRAMES_MIN, PAGE, PageNo, SPAN_PAGES, SlotNo};
