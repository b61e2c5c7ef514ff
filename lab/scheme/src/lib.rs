//! A small Scheme that lives on Vellum's collector: an example for authors of languages.
//!
//! It is a useful subset of R7RS-small, compiled to instructions of a stack machine, and has no `unsafe` code
//! where its memory is Vellum's.
//!
//! ```text
//! text ─ reader ─▶ Datum ─ compiler ─▶ [Op] ─ machine ─▶ values
//!                                               │
//!                              memory: scopes, objects of slots, the stack
//!                                               │
//!                                          vellum-heap
//! ```
//!
//! # Where to begin
//! `memory/vellum.rs` has all that speaks to the collector: some 300 lines. `machine.rs`, `run.rs`, `step.rs`
//! and `calls.rs` are the machine. The rest does not know that there is a collector, but for one rule: a
//! value is kept by a scope, a slot or the stack.
//!
//! # What there is
//! Proper tail calls, recursion as deep as memory allows (`machine::STACK_MAX`), continuations of any use,
//! `dynamic-wind`, `guard`, records, parameters, promises, several values, hash tables, ports. Numbers are
//! integers of 51 bits, with an error beyond, and floating-point numbers. Strings do not change. There are no
//! macros and no libraries.

pub mod call;
mod calls;
pub mod compiler;
pub mod datum;
pub mod fail;
pub mod immediate;
pub mod machine;
pub mod memory;
pub mod primitives;
pub mod printer;
pub mod reader;
mod run;
mod step;
pub mod symbols;
pub mod value;
