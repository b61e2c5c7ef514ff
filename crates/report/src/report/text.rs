//! Writes a report as text: short, aligned, a unit on every number.
//!
//! ```text
//! vellum: python3 script.py: exit status 0
//!   time      wall 2.31 s          user 2.10 s          system 181 ms
//!   at peak   360 MiB in use       10.0 MiB kept for reuse
//!   note      1 background process still running: daemon (pid 12)
//!
//! held at the peak       bytes   share
//! ```
//!
//! Words fill at most 80 columns; tables are as wide as their columns need. The words of all rows begin in
//! one column, and cells are aligned below each other.

use super::figure::{Content, Row};
use super::{Depth, Item, Report, Section};
use crate::Style;
use crate::plot::text::wrap;
use crate::table::columns;

/// The width of words, and of a table if no width is given.
pub const WORDS_MAX: usize = 80;
/// The width of labels, unless one is longer.
const LABEL_MIN: usize = 9;
/// The width of each cell of a row except the last, with the gap behind it.
const CELL: usize = 21;
/// The indent of a row, and of the second line of a sentence.
const INDENT: usize = 2;
const HANGING: usize = 4;

/// The layout of a report's text.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The colours.
    pub style: Style,
    /// The width of the widest line, if names allow it.
    pub columns: usize,
    /// True for the longer text.
    pub is_whole: bool,
}

impl Look {
    /// The brief report, which is the default.
    pub const fn brief(style: Style) -> Look {
        Look { style, columns: WORDS_MAX, is_whole: false }
    }

    /// The same layout with this width.
    #[must_use]
    pub const fn wide(self, columns: usize) -> Look {
        Look { columns, ..self }
    }
}

pub(super) fn write(report: &Report<'_>, look: Look) -> String {
    let shown = report.sections.iter().map(|section| Shown::of(section, look));
    let shown: Vec<Shown<'_>> = shown.filter(|shown| !shown.items.is_empty()).collect();
    let rows = || shown.iter().flat_map(|shown| shown.rows());
    let label = rows().map(|row| columns(&row.label)).fold(LABEL_MIN, usize::max);
    let state = rows().filter_map(|row| row.state).map(|(word, _)| columns(word) + 1).max().unwrap_or(0);
    let mut page = Page { text: String::new(), look, label, state };
    if let Some(head) = &report.head {
        let bold = format!("{}: {}", head.name, head.of);
        let dress = |style: Style, line: &str| line.replacen(&bold, &style.bold(&bold), 1);
        page.words(&[&*bold, &*head.ending].join(": "), [0, 0], dress);
    }
    for (at, shown) in shown.iter().enumerate() {
        let is_titled = !shown.title.is_empty();
        if !page.text.is_empty() && (is_titled || at > 0) {
            page.text.push('\n');
        }
        if is_titled {
            page.words(shown.title, [0, HANGING], Style::bold);
        }
        let indent = if is_titled || shown.rows().next().is_some() { INDENT } else { 0 };
        for (at, item) in shown.items.iter().enumerate() {
            page.item(item, indent, at == 0);
        }
    }
    page.text
}

/// The parts of a section that the text shows.
struct Shown<'a> {
    title: &'a str,
    items: Vec<&'a Item>,
}

impl<'a> Shown<'a> {
    fn of(section: &'a Section, look: Look) -> Shown<'a> {
        let is_shown = |(depth, item): &&(Depth, Item)| match item {
            Item::Picture(_) | Item::Chart(_, None) => false,
            _ => *depth == Depth::Brief || (*depth == Depth::Whole && look.is_whole),
        };
        let items = section.items.iter().filter(is_shown).map(|(_, item)| item).collect();
        Shown { title: if section.is_title_of_page { "" } else { &section.title }, items }
    }

    fn rows(&self) -> impl Iterator<Item = &'a Row> {
        self.items.iter().filter_map(|item| if let Item::Row(row) = item { Some(row) } else { None })
    }
}

struct Page {
    text: String,
    look: Look,
    label: usize,
    state: usize,
}

impl Page {
    /// The width of words.
    fn columns(&self) -> usize {
        self.look.columns.min(WORDS_MAX)
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn item(&mut self, item: &Item, indent: usize, is_first: bool) {
        let plain = |_, line: &str| line.to_owned();
        match item {
            Item::Row(row) => self.row(row),
            Item::Sentence(words) => self.words(words, [INDENT, HANGING], plain),
            Item::Verdict(words) => self.words(words, [0, HANGING], Style::bold),
            Item::Remark(words) => self.words(words, [indent; 2], plain),
            Item::Table(table) => {
                if indent == 0 && !is_first {
                    self.text.push('\n');
                }
                let Look { style, columns, .. } = self.look;
                self.text.push_str(&table.render(&" ".repeat(indent), columns, style));
            }
            Item::Chart(chart, label) => {
                let (Some(label), Some(curve)) = (label, chart.curve()) else { return };
                self.row(&Row::words(*label, curve));
            }
            Item::Lines(lines) => self.text.push_str(lines),
            Item::Picture(_) => {}
        }
    }

    fn row(&mut self, row: &Row) {
        let (style, label, state) = (self.look.style, self.label, self.state);
        let before = INDENT + label + 1 + state;
        let lines: Vec<String> = match &row.content {
            Content::Words(words) => wrapped(words, before, self.columns()),
            Content::Table(table) => table.render("", usize::MAX, style).lines().map(str::to_owned).collect(),
            Content::Cells(_) => in_columns(&row.cells(), self.columns() - before.min(self.columns()))
                .iter()
                .flat_map(|line| wrapped(line, before, self.columns()))
                .collect(),
        };
        let name = format!("{:<label$}", row.label);
        let name = if row.is_note { style.notice(&name) } else { style.label(&name) };
        let (word, is_noticed) = row.state.unwrap_or_default();
        let word = format!("{word:<state$}");
        let word = if is_noticed { style.notice(&word) } else { word };
        for (at, line) in lines.iter().enumerate() {
            match at {
                0 => self.line(&format!("{:INDENT$}{name} {word}{line}", "")),
                _ => self.line(&format!("{:before$}{line}", "")),
            }
        }
    }

    /// Words in lines; the first line has the first indent, the others the second.
    fn words(&mut self, words: &str, [first, rest]: [usize; 2], dress: impl Fn(Style, &str) -> String) {
        for (at, line) in wrapped(words, rest, self.columns()).into_iter().enumerate() {
            let line = dress(self.look.style, &line);
            self.line(&format!("{:indent$}{line}", "", indent = if at == 0 { first } else { rest }));
        }
    }
}

/// `text` in lines of `columns`, after an indent of this width, broken at blanks. A row of a table that fits
/// stays unchanged.
#[must_use]
pub fn wrapped(text: &str, indent: usize, columns: usize) -> Vec<String> {
    wrap(text, columns.saturating_sub(indent) as f64, |line| line.chars().count() as f64)
}

/// Cells aligned below those of other rows, with further lines if they do not fit in `room` columns.
fn in_columns(cells: &[String], room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for cell in cells {
        let at = lines.len() - 1;
        // There is at least one space between two cells.
        let filled = match columns(&lines[at]) {
            0 => 0,
            width => (width + 1).div_ceil(CELL) * CELL,
        };
        if filled > 0 && filled + columns(cell) > room {
            lines.push(cell.clone());
        } else {
            lines[at] = format!("{:<filled$}{cell}", lines[at]);
        }
    }
    lines
}
