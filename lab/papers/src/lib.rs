//! The sources' experiments, run again on this machine, beside what they published.
//!
//! They are for readers who want to reproduce results. Each experiment says what it measures, prints the
//! published figure and ours in one table, draws the published plot again, and ends with whether our goal for
//! it is met. They are no tests: a missed goal is printed, and nothing fails.
//!
//! ```text
//!   douglas::run ─▶ experiment ─▶ cells ─▶ Campaign ─▶ sheets ─▶ Finding ─▶ text, JSON, SVG
//!                                   │          ▲
//!                                   ▼          │ one line of figures
//!                                 worker processes (this executable again: `work`)
//! ```
//!
//! Every figure of an allocator comes from a process of its own, so that nothing of one allocator's state
//! reaches another's run; timings of nothing are made in this one. Arms of a comparison run by turns in
//! random order. All runs are kept and are in the JSON.
//!
//! They are no part of `vellum`, which only starts them: the binary is `vellum-papers` (`main.rs`),
//! its command line [`options`].
//!
//! The parts common to all sources are here: [`Finding`] with its tables, figures and goals, options,
//! progress, cells of a campaign, reports, the `workshop` that compiles the clients, and the `clock`. Each
//! source is a module: [`douglas`] (the page layer and malloc), [`bates`] (timings that can be trusted),
//! [`smith`] (collectors), [`nishigaki`] (how much memory a job is worth), [`cooper`] (collected programs
//! when memory is short). [`model`] has the machine and the programs of the 1981 paper.

mod area;
pub mod bates;
mod cells;
mod clock;
pub mod cooper;
pub mod douglas;
mod figure;
mod finding;
pub mod model;
pub mod nishigaki;
pub mod options;
mod params;
mod progress;
mod report;
pub mod smith;
mod workshop;

pub use figure::{Axis, Figure, Series};
pub use finding::{Finding, write_figures};
pub use options::{Common, Scale};
pub use params::{Params, WorkError};
pub use progress::Progress;
pub use report::{FigureError, Report};
pub use vellum_campaign::{Bound, Goal, Verdict};
pub use vellum_report::plot::Shape;
pub use vellum_report::{Table, Value};
