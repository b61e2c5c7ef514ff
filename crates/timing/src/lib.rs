//! Timings that can be trusted: clocks, recorders, marks, profiles and suites of operations.
//!
//! ```text
//! clock ─▶ Base            what a stamp is, what it costs, how fine it is
//!   └▶ record::Recorder    many observations, each with what else happened inside it ─▶ measure::Series
//!        └▶ bench::Suite   many things in one process ([`suites`]: those that come with Vellum)
//! marks                    where a collector or an allocator says what it did, and is asked to wait
//! profile                  the second look: where a region's time went, by symbol
//! machine                  what all of it was measured on
//! load                     how much else the processors had to do meanwhile
//! ```
//!
//! One rule holds everywhere: between two stamps there is only the operation, and results are stored in
//! memory that is already there.
//!
//! `vellum-measure` has the statistics, `vellum-experiment` the comparisons in turns, and `vellum-process`
//! the processes.

pub mod bench;
pub mod clock;
pub mod load;
pub mod machine;
pub mod marks;
pub mod profile;
#[doc(hidden)]
pub mod readers;
pub mod record;
pub mod suites;
