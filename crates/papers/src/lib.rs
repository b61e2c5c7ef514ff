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
//! Every figure comes from a process of its own, so that nothing of one allocator's state reaches another's run, and
//! arms of a comparison run by turns in random order. All runs are kept and are in the JSON.
//!
//! What is common to all sources is here: [`Finding`] with its tables, figures and goals, and the `clock`. A source is
//! a module: [`douglas`] (the page layer and malloc).

mod area;
mod clock;
pub mod douglas;
mod figure;
mod finding;
mod params;
mod table;

pub use figure::{Axis, Figure, Series, Shape};
pub use finding::{Bound, Finding, Goal, Verdict};
pub use params::{Params, WorkError};
pub use table::{Column, Table, Value};
