//! A small Scheme interpreter on Vellum's collector: an example for authors of languages.
//!
//! The language is a useful subset of R7RS-small, compiled to instructions of a stack machine. With Vellum's
//! collector as its memory, the crate has no `unsafe` code.
//!
//! ```text
//! text ─ reader ─▶ Datum ─ compiler ─▶ instructions ─ machine ─▶ values
//!          (syntax tree)                        │
//!                               memory: scopes, objects, the machine's stack
//!                                               │
//!                                          vellum-heap (the collector)
//! ```
//!
//! # Where to begin
//! `memory/vellum.rs` has all calls of the collector, in some 300 lines. `machine.rs`, `run.rs`, `step.rs`
//! and `calls.rs` are the machine. The other files follow only one rule for the collector: a value is alive
//! while a scope, an object or the stack holds it.
//!
//! # The language
//! - Proper tail calls, and recursion as deep as memory allows (`machine::STACK_MAX`).
//! - Continuations without limits, `dynamic-wind`, `guard`.
//! - Records, parameters, promises, several values, hash tables, ports.
//! - Integers of 51 bits (a larger result is an error), and floating-point numbers.
//! - Immutable strings; no macros and no libraries.

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
