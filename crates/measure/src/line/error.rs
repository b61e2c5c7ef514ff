//! Errors in a line of the text format: the position, the problem, and how to fix it.

use std::io;

use thiserror::Error;

use crate::{SeriesError, Stat};

/// The most characters of a wrong word that a message shows.
const SHOWN_MAX: usize = 40;

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct LineError {
    /// The number of the line, counted from 1.
    pub line: u64,
    /// The place in the line, in bytes counted from 1.
    pub column: usize,
    /// The problem, and how to fix it.
    pub problem: Problem,
}

/// The place of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) line: u64,
    /// The column where its header begins.
    pub(super) column: usize,
}

impl Place {
    /// An error about the line as a whole.
    pub(super) fn error(self, problem: Problem) -> LineError {
        self.error_at(self.column, problem)
    }

    pub(super) fn error_at(self, column: usize, problem: Problem) -> LineError {
        LineError { line: self.line, column, problem }
    }
}

/// A problem with a line. Each message shows what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum Problem {
    /// Bytes that are not UTF-8.
    #[error("this is not text (UTF-8); is the file one of observations?")]
    NotText,
    /// A first word that is not a header.
    #[error(
        "{found:?} has {fields} fields; write NAME:shape:Observation:labels:quantity:unit, with %3A for a colon in a name"
    )]
    Fields { found: String, fields: usize },
    /// A `%` that starts no escape.
    #[error("{0:?} is no escape; write % and two hexadecimal digits of UTF-8, and %25 for % itself")]
    Escape(String),
    /// A shape and a kind that do not go together.
    #[error("{0:?} is unknown; write 1l:Observation for values, summary:Sample for their five figures")]
    Role(String),
    /// A word that is not a finite number.
    #[error("{0:?} is not a finite number; write one such as 486 or 4.02e-5, or leave it out")]
    Number(String),
    /// A word that is not a whole number in its range.
    #[error("{found:?} is not a whole number from 0 to {max}")]
    Whole { found: String, max: u64 },
    /// A word that is not a mark.
    #[error("{0:?} is not a mark; write start,end,cause in nanoseconds, the end not before the start")]
    Mark(String),
    /// A summary that does not have five figures.
    #[error("a summary has 5 figures (n mean min max std), not {0}")]
    Summary(usize),
    /// Five figures that no values can have.
    #[error("no values have these figures; n is at least 1, min <= mean <= max, std >= 0")]
    Figures,
    /// A quantity that does not belong to a series.
    #[error("{found:?} is no quantity of observations; write one of {known}")]
    Quantity { found: String, known: &'static str },
    /// A unit other than the only one.
    #[error("{quantity} is in {unit}, not {found:?}; convert the values")]
    Unit { quantity: &'static str, unit: &'static str, found: String },
    /// A word of a base or machine that is not understood.
    #[error("{found:?} does not belong here; write key=value for {keys}, each once")]
    Pair {
        found: String,
        /// The keys that are allowed before the equals sign.
        keys: &'static str,
    },
    /// Figures that no clock's base can have.
    #[error("a base has {0}, as a clock can have it: a finite number, not negative, the step not 0")]
    Base(&'static str),
    /// A batch of zero operations.
    #[error("a batch of 0 operations; an observation holds at least 1")]
    NoBatch,
    /// Several words, or none, where one is required.
    #[error("{quantity} is one word, not {found}")]
    One { quantity: &'static str, found: usize },
    /// A line for a series that does not come right before it.
    #[error(
        "{quantity} belongs to observations of {name:?} with the same labels, which must be right before it; keep a series' lines together, 1l first"
    )]
    Orphan { quantity: String, name: String },
    /// The same quantity twice in one series.
    #[error("{0} is given twice for these observations; remove one of the two lines")]
    Twice(&'static str),
    /// A column that is longer or shorter than the values.
    #[error("{quantity} has {found} words for {expected} observations; write - where there is no value")]
    Length { quantity: &'static str, found: usize, expected: usize },
}

/// Errors that end reading.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ReadError {
    /// The input failed.
    #[error("cannot read the line after line {line}: {source}")]
    Io {
        /// The last line that was read completely.
        line: u64,
        source: io::Error,
    },
    /// A line was malformed, and malformed lines are refused.
    #[error(transparent)]
    Line(#[from] LineError),
}

/// Errors of writing.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum WriteError {
    /// The output failed.
    #[error("cannot write observations: {0}")]
    Io(#[from] io::Error),
    /// The series is invalid and could not be read back.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// Five figures that no values can have.
    #[error("summary {name}: the figures {stat:?} contradict each other; take them from Stat::of")]
    Figures { name: String, stat: Stat },
}

/// The beginning of `word`, short enough for a message.
pub(super) fn shown(word: &str) -> String {
    match word.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}
