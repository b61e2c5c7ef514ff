//! Figures: numbers with their units, and the cells and rows that hold them.

use crate::{Table, units};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// A size.
    Bytes(u64),
    /// A time, in nanoseconds.
    Nanos(u64),
    /// A count of the things named by the words beside it.
    Count(u64),
    /// A count of the named thing, given in the singular.
    Many(u64, &'static str),
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match *self {
            Figure::Bytes(bytes) => units::bytes(bytes),
            Figure::Nanos(ns) => units::time(Duration::from_nanos(ns)),
            Figure::Count(count) => units::count(count),
            Figure::Many(count, thing) => units::many(count, thing),
        })
    }
}

/// A fact of a row: a figure between words.
type Cell = (&'static str, Figure, Cow<'static, str>);

/// The content of a row, behind its label.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Cells(Vec<Cell>),
    Words(String),
    Table(Table),
}

/// A label and its content.
#[derive(Clone, Debug)]
pub struct Row {
    pub(crate) label: Cow<'static, str>,
    /// True if the reader must see the row before the figures.
    pub(crate) is_note: bool,
    /// A second label, and whether it is highlighted.
    pub(crate) state: Option<(&'static str, bool)>,
    pub(crate) content: Content,
}

impl Row {
    fn with_content(label: impl Into<Cow<'static, str>>, content: Content) -> Row {
        Row { label: label.into(), is_note: false, state: None, content }
    }

    /// A row without cells.
    pub fn new(label: impl Into<Cow<'static, str>>) -> Row {
        Row::with_content(label, Content::Cells(Vec::new()))
    }

    /// A row of words.
    pub fn words(label: impl Into<Cow<'static, str>>, words: impl Into<String>) -> Row {
        Row::with_content(label, Content::Words(words.into()))
    }

    /// A row with a table behind its label.
    pub fn table(label: impl Into<Cow<'static, str>>, table: Table) -> Row {
        Row::with_content(label, Content::Table(table))
    }

    /// A note on the figures.
    pub fn note(words: impl Into<String>) -> Row {
        Row { is_note: true, ..Row::words("note", words) }
    }

    /// A warning, without which the figures mislead.
    pub fn warning(words: impl Into<String>) -> Row {
        Row { is_note: true, ..Row::words("warning", words) }
    }

    /// The row with a second label behind the first.
    #[must_use]
    pub fn state(self, word: &'static str, is_noticed: bool) -> Row {
        Row { state: Some((word, is_noticed)), ..self }
    }

    /// Adds a cell: a figure behind the words that name it.
    #[must_use]
    pub fn figure(self, before: &'static str, figure: Figure) -> Row {
        self.cell((before, figure, "".into()))
    }

    /// Adds a cell: a figure before the words that name it.
    #[must_use]
    pub fn amount(self, figure: Figure, after: impl Into<Cow<'static, str>>) -> Row {
        self.cell(("", figure, after.into()))
    }

    /// Its cells as text; none for words and tables.
    pub(crate) fn cells(&self) -> Vec<String> {
        let Content::Cells(cells) = &self.content else { return Vec::new() };
        let said = |(before, figure, after): &Cell| format!("{before} {figure} {after}").trim().to_owned();
        cells.iter().map(said).collect()
    }

    fn cell(mut self, cell: Cell) -> Row {
        if let Content::Cells(cells) = &mut self.content {
            cells.push(cell);
        }
        self
    }
}
