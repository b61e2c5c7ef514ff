//! What a program's memory operations cost, by the source line that caused them.
//!
//! The work of `vellum cost`, without its words. Two witnesses are heard: the library that is preloaded (`vellum-recorder`) counts and
//! times each operation where it happens, and the kernel shows page faults. Both name instructions; what those belong to is found here.
//!
//! ```text
//!  program ── libvellum_cost.so ──▶ ledger ──────────────┐
//!     │             ▲  │ is this instruction the user's?  ├─▶ profile ─▶ Item { cause, operation, count, times }
//!     │         Answers ◀─┘      ▲                        │
//!     │                       Symbols (debug information) │
//!     └── page faults ──▶ FaultReader ────────────────────┘
//! ```
//!
//! Words: an *operation* is a call that asks for memory, changes it or gives it back, or a page fault; a *record* counts one
//! operation at one instruction or stack; the *cause* is the user's line; *via* is what that line called.

mod answers;
mod faults;
mod ledger;
mod names;
mod perf;
mod place;
mod profile;
mod symbols;

pub use answers::Answers;
pub use faults::{FaultReader, FaultWatch, Faults, minor_fault_ns};
pub use ledger::{Asides, Entry, LedgerFile, MappedModule, Recorded, Times};
pub use names::short_name;
pub use perf::Refused;
pub use place::{Cause, Causes, Instruction, Place, names};
pub use profile::{Disturbed, Flame, Item, Own, Profile, Sources, profile};
pub use symbols::{Function, Standing, Symbols, is_users_source};
