//! Units, tables and charts of reports. Every crate that reports uses these, so that a quantity looks the
//! same wherever it is printed, and all options accept the same texts.
//!
//! | module | what |
//! | --- | --- |
//! | [`units`] | quantities as text for people |
//! | [`amount`], [`option`] | quantities read from configuration files and options |
//! | [`table`], [`Value`] | tables, as text, Markdown, HTML and JSON |
//! | [`escape`] | text in HTML and XML |
//! | [`plot`] | pictures of observations and of computed curves, as SVG and in a terminal |
//! | [`Style`] | colour, on terminals only |
//! | [`Output`], [`stdout`] | files written whole or not at all; standard output that its reader may close |
//! | [`stderr`], [`say!`], [`exit`] | messages that cannot end the program; how commands end |
//! | [`arguments`] | how commands begin: their arguments, and what is said of wrong ones |
//!
//! Values of a [`vellum_measure::Unit`] are printed by that type; [`units`] has the kinds that are plain
//! Rust types.

pub mod amount;
pub mod arguments;
pub mod exit;
mod markup;
pub mod option;
mod output;
pub mod plot;
pub mod stderr;
pub mod stdout;
mod style;
pub mod table;
pub mod units;
mod value;

pub use markup::escape;
pub use output::{Output, OutputError, json};
pub use style::Style;
pub use table::Table;
pub use value::Value;
