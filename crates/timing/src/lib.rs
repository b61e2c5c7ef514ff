//! Timings that can be trusted: from the clock up to suites of operations.
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
//! One rule holds for all of it: between two stamps there is the operation and nothing else, and what is kept
//! goes into memory that is there already.
//!
//! Statistics of the numbers are `vellum-measure`'s; things compared with each other by turns,
//! `vellum-experiment`'s; processes, `vellum-process`'s.

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
