//! Walking up a stack without frame pointers, without allocating, and without stopping anybody.
//!
//! Every program carries a table for the C++ exception unwinder, `.eh_frame`, which says for each
//! instruction where the caller's stack pointer, frame pointer and return address are. Reading it is slow;
//! what it says for one instruction nearly always fits in eight bytes. So the table is read once an
//! instruction ([`Tables::rule_at`]), the answer is kept as a [`Rule`], and a step from one frame to its
//! caller ([`Frame::caller`]) is two loads.
//!
//! ```text
//! pc ─▶ Tables::rule_at ─▶ Rule ─▶ u64 (for a cache)
//!                           │
//! Frame { pc, sp, bp } ─────┴─▶ Frame::caller ─▶ Frame { pc', sp', bp' }
//! ```
//!
//! Two users: the library that `vellum cost` preloads walks the stack it runs on; the command itself walks
//! the pieces of stack that the kernel hands out with a page fault.
//!
//! Words: *pc* is the address of an instruction being executed, *sp* and *bp* the registers `rsp` and `rbp`
//! (aarch64: `sp` and `x29`),
//! the *CFA* is the stack pointer's value in the caller just before its call. A *return address* names the
//! instruction after the call: what it belongs to is found one byte before it.
//!
//! Frames of a program that CPython runs are the interpreter's own, and are read by themselves
//! ([`Interpreter`]).
//!
//! Frames that a [`Rule`] cannot express (other registers as bases, general expressions, signal frames) end
//! the walk. x86-64 and aarch64 are provided, of which a program has the one it is compiled for (`arch`).

#![cfg_attr(not(test), no_std)]

mod arch;
mod frame;
mod python;
mod rule;
mod tables;

pub use frame::{FRAME_BYTES_MAX, Frame};
pub use python::{Code, Interpreter, NAME_MAX, Python, Read, Running};
pub use rule::{Cfa, Rule, SavedBp};
pub use tables::Tables;
