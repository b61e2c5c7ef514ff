//! The cost of a program's memory operations, by the source line that caused them, for `vellum cost`.
//!
//! There are two sources of data. The preloaded library (`vellum-recorder`) counts and times each operation
//! in a shared file (*ledger*), and the kernel reports page faults. Both report addresses of instructions;
//! this crate finds their source lines.
//!
//! ```text
//!  program ── libvellum_cost.so ──▶ ledger ──────────────┐
//!     │             ▲  │ is this instruction the user's?  ├─▶ profile ─▶ Item { cause, operation,
//!     │         Answers ◀─┘      ▲                        │                     count, times }
//!     │                       Symbols (debug information) │
//!     └── page faults ──▶ FaultReader ────────────────────┘
//! ```
//!
//! This crate also has the file for `vellum heap` in which processes record how much memory each stack holds
//! ([`HeldFile`]).
//!
//! Words: an *operation* is a page fault, or a call that allocates, resizes or frees memory. A *record*
//! counts one operation at one instruction or stack. The *cause* is the user's line; *via* is the function
//! that the line called.

mod answers;
mod faults;
mod held;
mod ledger;
mod log;
mod perf;
mod place;
mod profile;
#[doc(hidden)]
pub mod readers;
mod script;
mod wrappers;

pub use answers::Answers;
pub use faults::{FaultReader, FaultWatch, Faults, minor_fault_ns};
pub use held::{HeldFile, HeldStack, Holder, Holding, Resident, ResidentClass};
pub use ledger::{Asides, Entry, LedgerFile, Recorded, Times};
pub use log::MappedModule;
pub use perf::Refused;
pub use place::{
    ALLOCATOR, Cause, Causes, Instruction, Place, Spot, is_entry, is_languages, is_standard, names,
};
pub use profile::{Disturbed, Flame, Item, Own, Profile, Sources, profile};
pub use script::{ScriptLine, in_order};
pub use wrappers::Wrappers;
