//! Built-in procedures that Scheme cannot express, or only slowly. The others are in `prelude.scm`.

pub mod control;
pub mod lists;
pub mod numbers;
pub mod ports;
pub mod records;
pub mod tables;
pub mod text;
pub mod vectors;

use crate::call::Table;

/// All built-in procedures. Their numbers are their places here, one table after the other.
pub static PRIMITIVES: [Table; 8] = [
    control::TABLE,
    lists::TABLE,
    numbers::TABLE,
    ports::TABLE,
    records::TABLE,
    tables::TABLE,
    text::TABLE,
    vectors::TABLE,
];
