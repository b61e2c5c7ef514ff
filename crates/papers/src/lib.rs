//! The sources' experiments, run again on this machine, beside what they published.
//!
//! These are for someone who doubts: each experiment says what it measures, prints the published figure and ours in
//! one table, draws the published plot again, and closes with whether our goal for it is met. They are no tests: a goal
//! that is missed is printed, and nothing fails.
//!
//! ```text
//!   douglas::run ─▶ experiment ─▶ cells ─▶ Campaign (vellum-probe) ─▶ sheets ─▶ Finding ─▶ text, JSON, SVG
//!                                   │          ▲
//!                                   ▼          │ one line of figures
//!                                 worker processes (this executable again: `work`)
//! ```
//!
//! Every figure of an allocator comes from a process of its own, so that nothing of one allocator's state reaches another's
//! run; timings of nothing are made in this one. Arms of a comparison run by turns in random order. All runs are kept and
//! are in the JSON.
//!
//! What is common to all sources is here: [`Finding`] with its tables, figures and goals, options, progress, how cells of a
//! campaign are put and read, how reports are written, the `workshop` that makes programs of the clients, and the `clock`. A source is
//! a module: [`douglas`] (the page layer and malloc), [`bates`] (timings that can be trusted), [`smith`] (collectors),
//! [`nishigaki`] (how much memory a job is worth), [`cooper`] (collected programs when memory is short).

mod area;
pub mod bates;
mod cells;
mod clock;
pub mod cooper;
pub mod douglas;
mod figure;
mod finding;
pub mod nishigaki;
mod options;
mod params;
mod progress;
mod report;
pub mod smith;
mod table;
mod workshop;

pub use figure::{Axis, Figure, Series, Shape};
pub use finding::{Finding, write_figures};
pub use options::{Common, Scale};
pub use params::{Params, WorkError};
pub use progress::Progress;
pub use report::{FigureError, Report};
pub use table::{Column, Table, Value};
pub use vellum_measure::{Bound, Goal, Verdict};
