//! The text format of observations: one line for each series, with a header as its first word.
//!
//! ```text
//! BASE:1l:Observation::Time:us 486 402 431 9053 …          values
//! BASE:summary:Sample:n:Time:us 1000 486 402 9053 499      their count, mean, min, max, std
//! ```
//!
//! `grep`, `cut` and people can read this format without Vellum. Each further column of the observations is
//! a line of its own with the same name and labels. Tools that need only the values can skip these lines:
//!
//! ```text
//! sort:1l:Observation:arm=A:Time:ns 2130 2140 91320        the values: a new series begins
//! sort:with:Meta:arm=A:Batch:n 64                          facts: Batch, Clock, Base, CpuBase, Machine
//! sort:with:Observation:arm=A:Start:ns 1200 3900 6700      a column: one word for each value
//! sort:with:Observation:arm=A:Cpu:ns 2100 - 2130
//! sort:with:Mark:arm=A:Mark:ns 6800,91000,minor            marks: start, end, cause
//! ```
//!
//! Written series are read back exactly. The length of a line is not limited: a reader holds one line and one
//! series. A malformed line is reported with its number and column ([`LineError`]), and refused or skipped as
//! the caller chooses ([`OnError`]).
//!
//! The whole format is described in `docs/observations.md`.
//!
//! Source: `bench -o` of Bates 1999, "Reliable Benchmarking with Limbo on Inferno". He wrote tools for these
//! lines (`bgrep`, `bcut`) because the usual ones limited the length of a line. The `with` lines are ours.

mod body;
mod error;
mod escape;
mod header;
mod reader;
mod words;
mod writer;

pub use error::{LineError, Problem, ReadError, WriteError};
pub use reader::{Entry, OnError, Reader, SKIPPED_KEPT_MAX, Skipped};
pub use writer::{write_entry, write_series, write_summary};
