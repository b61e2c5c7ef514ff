//! The report, its sections and their items; the crate's documentation explains their use.

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
    /// Its text.
    ///
    /// # Errors
    /// If there is a value that JSON does not have.
    fn json(&self) -> Result<String, OutputError>;
}

impl<T: Serialize> Document for T {
    fn json(&self) -> Result<String, OutputError> {
        output::json(self)
    }
}

/// How much of a report an item belongs to.
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
    /// A sentence by itself.
    Sentence(String),
    /// What follows from the rest.
    Verdict(String),
    /// Words on the table before.
    Remark(String),
    Table(Table),
    /// With the label of its curve in the text, if it has a line there.
    Chart(Chart, Option<&'static str>),
    /// A drawing for the page: SVG.
    Picture(String),
    /// Lines with a layout of their own.
    Lines(String),
}

/// Items, perhaps under a title.
#[derive(Clone, Debug, Default)]
pub struct Section {
    pub(crate) title: String,
    /// Whether the title is the page's only: in the text a table's first head says the same.
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

    /// A section whose title stands on the page alone.
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

    /// Adds something to know about the figures.
    pub fn note(&mut self, words: impl Into<String>) -> &mut Section {
        self.row(Row::note(words))
    }

    /// Adds several such.
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

    /// Adds what follows from the rest, or what the rest is about.
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

    /// Adds a table; nothing if it has no row.
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

    /// Adds lines with a layout of their own, if there are any.
    pub fn lines(&mut self, lines: String) -> &mut Section {
        if lines.is_empty() { self } else { self.item(Item::Lines(lines)) }
    }

    /// Adds what belongs to the whole report alone.
    pub fn whole(&mut self, add: impl FnOnce(&mut Section)) -> &mut Section {
        self.deeper(Depth::Whole, add)
    }

    /// Adds what the page alone has.
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

/// What a report is about: the first line of the text, and the frame of the page.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Who reports: `vellum heap`.
    pub name: &'static str,
    /// What the page shows, for the title of its window.
    pub subject: &'static str,
    /// What was looked at: a command, above all.
    pub of: String,
    /// What became of it.
    pub ending: String,
    /// What else to know about the page, at its end.
    pub footer: String,
}

/// What a command reports.
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

    /// The same, with the document that is its JSON.
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

    /// The report for people, ending in a newline; nothing where nothing was reported.
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
    /// As for [`Document::json`].
    pub fn json(&self) -> Result<String, OutputError> {
        self.document.map_or_else(|| Ok("null\n".to_owned()), Document::json)
    }
}
