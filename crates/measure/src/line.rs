//! The text format of observations: one line a series, its first word a header.
//!
//! ```text
//! BASE:1l:Observation::Time:us 486 402 431 9053 …          values
//! BASE:summary:Sample:n:Time:us 1000 486 402 9053 499      their count, mean, min, max, std
//! ```
//!
//! A text that `grep`, `cut` and an eye can take apart outlives every program. Facts about the observations
//! beyond their values follow in lines of the same name and labels, one fact a line, so that a reader of
//! values alone can skip them:
//!
//! ```text
//! sort:1l:Observation:arm=A:Time:ns 2130 2140 91320        values, of which the series begins
//! sort:with:Meta:arm=A:Batch:n 64                          about all: Batch, Clock, Base, CpuBase, Machine
//! sort:with:Observation:arm=A:Start:ns 1200 3900 6700      about each of them: a column
//! sort:with:Observation:arm=A:Cpu:ns 2100 - 2130
//! sort:with:Mark:arm=A:Mark:ns 6800,91000,minor            what else was at work
//! ```
//!
//! Reading back what was written gives the same series, to the last bit. Lines have no limit on their length:
//! a reader holds one line and one series. A line that cannot be read is reported by number and column
//! ([`LineError`]), and refused or skipped as the caller chooses ([`OnError`]).
//!
//! The whole format is described in `docs/observations.md`.
//!
//! Source: Bates' `bench -o`; the tools that took its lines apart (`bgrep`, `bcut`) exist only because the
//! usual ones had a limit on the length of a line. The lines beginning with `with` are ours.

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
