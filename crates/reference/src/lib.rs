//! Measures the working-set curve of a running job from outside its processes.
//!
//! The curve gives, for each length of a *window* of the job's CPU time, the mean number of pages referenced
//! in it (theory: `vellum-workset`). Any running program of the user can be measured, without privilege.
//!
//! ```text
//! Target ─▶ Job         the processes, their ends, their user CPU time
//!             │
//! Source ─▶ Watcher ─▶ History ─▶ curve · knee · recommended limit
//!             │
//!           Budget      how often references may be counted
//! Ages ─────────────▶ memory not touched for 1 s, 10 s, 1 min, 10 min of wall-clock time
//! Delay ────────────▶ S: the cost of a page fault on this machine, measured
//! Whole ────────────▶ the curve of all the time, also between cycles ─▶ recommended limit
//! ```
//!
//! [`vellum_kernel::generations`] reads, ages and evicts a cgroup's generations (pages grouped by age), for
//! a source and for the governor.
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | source | a way to observe references: [`SourceKind`]. By default accessed bits; for large jobs page tables, for very large jobs generations, where available |
//! | Δ | the smallest window, in user CPU time of the job |
//! | cycle | one sample of the curve: a *clearing* (all pages are marked as not referenced), then *looks* (counts of the pages referenced since). Some sources need further clearings between the looks |
//! | knee | the window beyond which more memory is not worth its cost: `vellum-workset` |
//! | stall | time for which a process waits because of the watch |
//! | imposed | CPU time of the job that the watch costs it |
//! | grain | the page size for which a result is exact: [`Grain`] |
//!
//! # Use
//!
//! ```no_run
//! use vellum_kernel::Pid;
//! use vellum_reference::{Options, Target, Watcher};
//!
//! let mut watcher = Watcher::new(Target::process(Pid(4711))?, Options::default())?;
//! while let Some(wait) = watcher.step()?.wait {
//!     std::thread::sleep(wait);
//!     if let Some(curve) = watcher.curve() {
//!         println!("{:?}", curve.last());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The counts
//!
//! - Pages count that are *mapped* and referenced. Data that a program reads by `read` without mapping it is
//!   not counted.
//! - A page that several processes of the job share counts once, as far as the source shows the sharing.
//! - A huge page counts whole. If most memory is in huge pages, reports have a note.
//! - Clearing accessed bits removes a hint for the kernel's own page replacement. Under memory pressure, the
//!   kernel therefore chooses pages a little worse.

mod advice;
mod budget;
mod charged;
mod delay;
mod event;
mod frame;
mod growth;
mod job;
mod options;
#[doc(hidden)]
pub mod readers;
mod source;
mod sources;
mod target;
mod verdict;
mod watcher;
mod whole;

pub use advice::{CYCLES_MIN, RESERVE};
pub use delay::{Delay, DelayError, Device, is_on_disk};
pub use event::Event;
pub use frame::{Age, Disturbance, Frame, Wanting, Window, windows};
pub use options::{
    BUDGET, BURST, DELTA, DELTA_MAX, DELTA_MIN, FIRST_LOOKS, IDLE_BUDGET, Options, WINDOWS, WINDOWS_MAX,
    WatchError,
};
pub use source::{Availability, Count, SourceChoice, SourceKind};
pub use sources::has_soft_dirty;
pub use target::{MEMBERS_MAX, Target, TargetError};
pub use verdict::{ByAge, Ground, Kind, Knee, LESS, Limit, Verdict};
pub use watcher::{AGES, Grain, HUGE_FROM, MIXED_FROM, PAGE_BYTES, Step, Watcher};
