//! Timings that can be trusted: clocks, recorders, marks and suites of operations.
//!
//! ```text
//! clock ─▶ Base            stamps, their cost and resolution
//!   └▶ record::Recorder    many observations, each with the events during it ─▶ measure::Series
//!        └▶ bench::Suite   many operations in one process ([`suites`]: Vellum's own)
//! marks                    times at which collectors and allocators work, and how to postpone it
//! machine                  the description of the machine
//! load                     how long tasks waited for a processor
//! ```
//!
//! One rule holds everywhere: between two stamps there is only the operation, and results are stored in
//! memory that is already there.
//!
//! `vellum-measure` has the statistics, `vellum-experiment` compares operations that run by turns, and
//! `vellum-process` runs processes.

pub mod bench;
pub mod clock;
pub mod load;
pub mod machine;
pub mod marks;
pub mod record;
pub mod suites;
