//! Reports of Vellum's commands: as text, HTML and JSON, with tables, plots and quantities with units.
//!
//! Each command builds one [`Report`], and a writer for each format prints it. A quantity therefore looks the
//! same wherever it is printed. All options also accept the same forms of sizes and times.
//!
//! ```text
//! a command ─▶ Report ─┬─▶ text    a terminal or a file: short, aligned, a unit on every number
//!   Figures, Parts     ├─▶ html    one self-contained page
//!   in Sections        └─▶ json    the command's own document
//! ```
//!
//! - A [`Section`] has rows, notes, tables, charts and sentences in reading order. Some are only for the
//!   longer text or for the HTML page.
//! - A number is a [`Figure`] with its unit. [`Parts`] add up to a whole at one [`Moment`]; this is checked
//!   when they are built.
//! - The JSON is a documented structure that the command adds to the report; it is not derived from the
//!   sections. Texts for people may change from version to version, but names in the JSON may not.
//!
//! | module | contents |
//! | --- | --- |
//! | [`Report`], [`Section`], [`Row`] | the report, and its writers |
//! | [`units`] | quantities as text for people |
//! | [`amount`], [`option`] | parsers of quantities in configuration files and options |
//! | [`table`], [`Value`] | tables, as text, Markdown, HTML and JSON |
//! | [`escape`] | text in HTML and XML |
//! | [`plot`] | pictures of observations and of computed curves, as SVG and in a terminal |
//! | [`Style`] | colour, on terminals only |
//! | [`Output`], [`json`], [`stdout`] | files written whole or not at all; output that its reader may close |
//! | [`stderr`], [`say!`], [`exit`] | messages that cannot end the program; how commands end |
//! | [`arguments`] | parser of command lines, and the messages for wrong arguments |
//!
//! A value with a [`vellum_measure::Unit`] is printed by that type; [`units`] prints quantities of plain Rust
//! types.

pub mod amount;
pub mod arguments;
pub mod exit;
mod markup;
pub mod option;
mod output;
pub mod plot;
mod report;
pub mod stderr;
pub mod stdout;
mod style;
pub mod table;
pub mod units;
mod value;

pub use markup::escape;
pub use output::{Output, OutputError, json, write_each};
pub use report::{Document, Figure, Head, Look, Moment, Parts, Report, Row, Section, WORDS_MAX, wrapped};
pub use style::Style;
pub use table::Table;
pub use value::Value;
