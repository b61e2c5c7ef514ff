//! The compiler: turns data into instructions, in two passes.
//!
//! ```text
//! Datum ── analyse ──▶ Expression ── emit ──▶ instructions (`Op`)
//!         (rewrites derived forms;   (replaces variables by positions;
//!          resolves names)            closures copy the variables that they use)
//! ```
//!
//! # Source
//! Flat closures and cells for assigned variables: Dybvig, *Three implementation models for Scheme* (1987),
//! chapter 4. Departure: a procedure that calls itself need not capture itself for that (`Op::Itself`).

mod analyse;
mod derived;
mod emit;
mod expression;
pub mod op;

pub use analyse::Analyser;
pub use emit::Emitter;
pub use expression::{Expression, Lambda, Variable};
