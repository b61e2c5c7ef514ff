//! The experiments of five published papers, repeated on this machine, with published results beside ours.
//!
//! The experiments are for readers who want to reproduce results. Each experiment prints the published
//! figure and ours in one table, draws the published plot again, and reports whether our goal is met. They
//! are no tests: a missed goal is printed, and nothing fails.
//!
//! ```text
//!   douglas::run ─▶ experiment ─▶ cells ─▶ Campaign ─▶ sheets ─▶ Finding ─▶ text, JSON, SVG
//!                                   │          ▲
//!                                   ▼          │ one line of figures
//!                                 worker processes (this executable again: `work`)
//! ```
//!
//! A *cell* is one thing to measure, its *arms* are the processes compared on it, and its *sheet* has all
//! their runs (`vellum_campaign`). Each arm has its own process, so that no state of one allocator reaches
//! another's run. The arms run by turns in random order, and the JSON has all runs. The timings of [`bates`]
//! are made in this process.
//!
//! The experiments are not part of `vellum`, which only starts `vellum-papers` (`main.rs`).
//!
//! The crate root has the common parts: [`Finding`] (tables, figures and goals), options, progress, reports,
//! the `workshop` that compiles the clients, the `clock`. Each paper is a module:
//!
//! - [`douglas`] (the page layer and malloc)
//! - [`bates`] (reliable timings)
//! - [`smith`] (collectors)
//! - [`nishigaki`] (how much memory a job should have; [`model`] simulates its machine and programs)
//! - [`cooper`] (collected programs when memory is short)

mod area;
pub mod bates;
mod clock;
pub mod cooper;
pub mod douglas;
mod figure;
mod finding;
pub mod model;
pub mod nishigaki;
mod options;
mod progress;
mod report;
pub mod smith;
mod workshop;

pub use figure::{Axis, Figure, Series};
pub use finding::{FigureError, Finding, write_figures};
pub use options::{Common, Scale};
pub use progress::Progress;
pub use report::Report;
pub use vellum_campaign::{Bound, Goal, Verdict};
pub use vellum_report::plot::Shape;
pub use vellum_report::{Table, Value};
