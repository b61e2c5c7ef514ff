//! Precise timing of operations: clocks, recorders, marks and benchmark suites.
//!
//! ```text
//! clock ─▶ Base            readings of a clock (stamps), their cost and resolution
//!   └▶ record::Recorder    many observations, each with its events ─▶ measure::Series
//!        └▶ bench::Suite   many operations in one process (`suites`: operations of Vellum)
//! marks                    spans in which collectors and allocators worked; requests to postpone such work
//! machine                  the description of the machine
//! load                     how long tasks waited for a processor
//! ```
//!
//! One rule holds everywhere: between two stamps there is only the operation, and results are stored in
//! memory that is already resident.
//!
//! `vellum-measure` has the statistics, `vellum-experiment` compares operations that run alternately, and
//! `vellum-process` runs processes. Methods taken from Bates 1999, "Reliable Benchmarking with Limbo on
//! Inferno", are marked in the files.

pub mod bench;
pub mod clock;
pub mod load;
pub mod machine;
pub mod marks;
pub mod record;
pub mod suites;
