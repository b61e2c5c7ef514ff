//! The report, its sections and their items (rows, sentences, tables, charts); see the crate's documentation.

mod figure;
mod page;
mod parts;
mod text;

pub use figure::{Figure, Row};
pub use parts::{Moment, Parts};
pub use text::{Look, WORDS_MAX, wrapped};

use crate::plot::Chart;
use crate::{OutputError, Table, output};
use serde::Serialize;

/// A document that can be written as JSON, whatever its type.
pub trait Document {
    /// The document as JSON.
    ///
    /// # Errors
    /// If JSON has no form for a value.
    fn json(&self) -> Result<String, OutputError>;
}

impl<T: Serialize> Document for T {
    fn json(&self) -> Result<String, OutputError> {
        output::json(self)
    }
}

/// The forms of the report that an item belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    Brief,
    Whole,
    Page,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Row(Row),
    /// A separate sentence.
    Sentence(String),
    /// The conclusion from the other items.
    Verdict(String),
    /// Words on the table before.
    Remark(String),
    Table(Table),
    /// A chart, with the label of its curve in the text if it has a line there.
    Chart(Chart, Option<&'static str>),
    /// A drawing for the page: SVG.
    Picture(String),
    /// Lines with a fixed layout.
    Lines(String),
}

/// A section of a report: items, optionally under a title.
#[derive(Clone, Debug, Default)]
pub struct Section {
    pub(crate) title: String,
    /// True if only the page shows the title: in the text the first head of a table is the same.
    pub(crate) is_title_of_page: bool,
    pub(crate) items: Vec<(Depth, Item)>,
}

impl Section {
    /// A section without a title.
    pub fn new() -> Section {
        Section::default()
    }

    /// A section under a title.
    pub fn titled(title: impl Into<String>) -> Section {
        Section { title: title.into(), ..Section::default() }
    }

    /// A section whose title is only on the page.
    pub fn on_page(title: impl Into<String>) -> Section {
        Section { is_title_of_page: true, ..Section::titled(title) }
    }

    fn item(&mut self, item: Item) -> &mut Section {
        self.items.push((Depth::Brief, item));
        self
    }

    /// Adds a row, or a note.
    pub fn row(&mut self, row: Row) -> &mut Section {
        self.item(Item::Row(row))
    }

    /// Adds rows of words.
    pub fn rows(&mut self, rows: impl IntoIterator<Item = (&'static str, String)>) -> &mut Section {
        rows.into_iter().fold(self, |section, (label, words)| section.row(Row::words(label, words)))
    }

    /// Adds a note on the figures.
    pub fn note(&mut self, words: impl Into<String>) -> &mut Section {
        self.row(Row::note(words))
    }

    /// Adds several notes.
    pub fn notes(&mut self, notes: impl IntoIterator<Item: Into<String>>) -> &mut Section {
        notes.into_iter().fold(self, |section, note| section.note(note))
    }

    /// Adds the parts of a whole in one row, and their excess if they have any.
    pub fn parts(&mut self, parts: &Parts) -> &mut Section {
        self.row(parts.row()).notes(parts.excess())
    }

    /// Adds a sentence.
    pub fn sentence(&mut self, words: impl Into<String>) -> &mut Section {
        self.item(Item::Sentence(words.into()))
    }

    /// Adds the conclusion from the other items, or their subject.
    pub fn verdict(&mut self, words: impl Into<String>) -> &mut Section {
        self.item(Item::Verdict(words.into()))
    }

    /// Adds words on the table before, or in its place, if there are any.
    pub fn remark(&mut self, words: impl Into<Option<String>>) -> &mut Section {
        match words.into() {
            Some(words) => self.item(Item::Remark(words)),
            None => self,
        }
    }

    /// Adds a table, unless it has no rows.
    pub fn table(&mut self, table: Table) -> &mut Section {
        if table.is_empty() { self } else { self.item(Item::Table(table)) }
    }

    /// Adds a chart, which the text leaves out.
    pub fn chart(&mut self, chart: Chart) -> &mut Section {
        self.item(Item::Chart(chart, None))
    }

    /// Adds a chart over time, which is one line of blocks in the text.
    pub fn curve(&mut self, label: &'static str, chart: Chart) -> &mut Section {
        self.item(Item::Chart(chart, Some(label)))
    }

    /// Adds a drawing as SVG, which the text leaves out.
    pub fn picture(&mut self, svg: String) -> &mut Section {
        self.item(Item::Picture(svg))
    }

    /// Adds lines with a fixed layout, if there are any.
    pub fn lines(&mut self, lines: String) -> &mut Section {
        if lines.is_empty() { self } else { self.item(Item::Lines(lines)) }
    }

    /// Adds items that only the whole report has.
    pub fn whole(&mut self, add: impl FnOnce(&mut Section)) -> &mut Section {
        self.deeper(Depth::Whole, add)
    }

    /// Adds items that only the page has.
    pub fn page(&mut self, add: impl FnOnce(&mut Section)) -> &mut Section {
        self.deeper(Depth::Page, add)
    }

    fn deeper(&mut self, depth: Depth, add: impl FnOnce(&mut Section)) -> &mut Section {
        let before = self.items.len();
        add(self);
        self.items[before..].iter_mut().for_each(|(of, _)| *of = depth);
        self
    }
}

/// The subject of a report: the first line of the text, and the frame of the page.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The reporting command, such as `vellum heap`.
    pub name: &'static str,
    /// The subject of the page, for its window's title.
    pub subject: &'static str,
    /// The measured object, usually a command.
    pub of: String,
    /// Its end.
    pub ending: String,
    /// Further notes on the page, at its end.
    pub footer: String,
}

/// The report of a command.
#[derive(Default)]
pub struct Report<'a> {
    pub(crate) head: Option<Head>,
    pub(crate) sections: Vec<Section>,
    document: Option<&'a dyn Document>,
}

impl std::fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Report").field("head", &self.head).field("sections", &self.sections).finish()
    }
}

impl<'a> Report<'a> {
    /// A report without sections.
    pub fn new(head: impl Into<Option<Head>>) -> Report<'a> {
        Report { head: head.into(), ..Report::default() }
    }

    /// The report with the document for its JSON.
    #[must_use]
    pub fn documented(self, document: &'a dyn Document) -> Report<'a> {
        Report { document: Some(document), ..self }
    }

    /// Adds a section that `fill` fills.
    pub fn section(&mut self, mut section: Section, fill: impl FnOnce(&mut Section)) -> &mut Report<'a> {
        fill(&mut section);
        self.sections.push(section);
        self
    }

    /// Adds sections.
    pub fn sections(&mut self, sections: impl IntoIterator<Item = Section>) -> &mut Report<'a> {
        self.sections.extend(sections);
        self
    }

    /// The report as text with a newline at its end; empty if there is nothing to report.
    pub fn text(&self, look: Look) -> String {
        text::write(self, look)
    }

    /// The report as one HTML page.
    pub fn html(&self) -> String {
        page::write(self)
    }

    /// The report for programs: its document.
    ///
    /// # Errors
    /// Those of [`Document::json`].
    pub fn json(&self) -> Result<String, OutputError> {
        self.document.map_or_else(|| Ok("null\n".to_owned()), Document::json)
    }
}
