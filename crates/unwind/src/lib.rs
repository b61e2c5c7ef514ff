//! Stack walks without frame pointers, without allocation, and without stopping a thread.
//!
//! Every program has a table for the C++ exception unwinder, `.eh_frame`. For each instruction it describes
//! where the caller's stack pointer, frame pointer and return address are. Reading this table is slow, but
//! the description of one instruction nearly always fits in eight bytes. The table is therefore read once for
//! each instruction ([`Tables::rule_at`]), and the result is kept as a [`Rule`]. A step from one frame to its
//! caller ([`Frame::caller`]) is then two loads.
//!
//! ```text
//! pc ─▶ Tables::rule_at ─▶ Rule ─▶ u64 (for a cache)
//!                           │
//! Frame { pc, sp, bp } ─────┴─▶ Frame::caller ─▶ Frame { pc', sp', bp' }
//! ```
//!
//! The library that `vellum cost` preloads walks the stack on which it runs. The command itself walks the
//! pieces of stack that the kernel delivers with a page fault.
//!
//! Words: *pc* is the address of an instruction being executed, *sp* and *bp* the registers `rsp` and `rbp`
//! (aarch64: `sp` and `x29`). The *CFA* is the stack pointer's value in the caller just before its call. A
//! *return address* is the address of the instruction after the call; the call itself is found one byte
//! before it.
//!
//! [`Interpreter`] reads the frames of a Python program, which CPython keeps beside the machine's stack.
//!
//! Frames that a [`Rule`] cannot express (other registers as bases, general expressions, signal frames) end
//! the walk. `arch` has x86-64 and aarch64; a program contains the one it is compiled for.

#![cfg_attr(not(test), no_std)]

// Machine-dependent parts: register numbers, and where a frame has its return address. Each machine has one
// file, with the same names.
#[cfg_attr(target_arch = "aarch64", path = "arch/aarch64.rs")]
#[cfg_attr(not(target_arch = "aarch64"), path = "arch/x86_64.rs")]
mod arch;
mod frame;
mod python;
mod rule;
mod tables;

pub use frame::{FRAME_BYTES_MAX, Frame};
pub use python::{Interpreter, Line, Python, Read};
pub use rule::{Cfa, Rule, SavedBp};
pub use tables::Tables;

/// An odd multiplier that spreads a word's bits: 2^64 divided by the golden ratio.
pub const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of words, begun with [`SPREAD`], with one word more.
#[inline(always)]
pub fn mixed(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(SPREAD).rotate_left(29)
}
