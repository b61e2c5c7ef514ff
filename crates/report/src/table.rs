//! Tables: printed as aligned columns for people, and as JSON objects with named fields for programs.
//!
//! Text is aligned left, numbers right. A table that is too wide shortens its first column, never its
//! numbers. A row of one cell spans all columns. Control characters become question marks.

use crate::markup::escape;
use crate::plot::text::fit;
use crate::{Style, Value};
use serde::ser::{Serialize, SerializeMap, Serializer};
use unicode_width::UnicodeWidthStr;

/// The columns between two cells.
const GAP: usize = 2;
/// The columns of the longest bar.
const BAR: usize = 24;
/// The least width of the first column when it is shortened.
const NAME_MIN: usize = 8;
/// The indent of each line of a table with a title.
const INDENT: &str = "  ";

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name in JSON, with the unit as its ending.
    key: String,
    /// The lines of its head.
    head: Vec<String>,
    /// True if it has words; if `None`, its cells decide.
    is_left: Option<bool>,
}

impl Column {
    fn new(key: &str, head: &str, is_left: Option<bool>) -> Self {
        Self { key: key.to_owned(), head: head.split('|').map(str::to_owned).collect(), is_left }
    }
}

/// A table: rows of cells under the heads of its columns.
#[derive(Debug, Clone)]
pub struct Table {
    /// The title.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a value for every column; cells at the end may be left out.
    pub rows: Vec<Vec<Value>>,
    /// The number of columns at its end that are left out if the table is too wide.
    spare: usize,
    /// True if a name that is too long keeps its end, where paths differ.
    keeps_ends: bool,
}

impl Table {
    /// A table without rows, for people and programs. Columns are (key, head); heads wrap at `|`. The first
    /// column has words, and so has each column with a [`Value::Text`].
    #[must_use]
    pub fn new(title: &str, columns: &[(&str, &str)]) -> Self {
        let column =
            |(at, (key, head)): (usize, &(&str, &str))| Column::new(key, head, (at == 0).then_some(true));
        let columns = columns.iter().enumerate().map(column).collect();
        Self { title: title.to_owned(), ..Self::of(columns) }
    }

    /// A table of texts without rows and title; the first `left` columns have words.
    #[must_use]
    pub fn plain(heads: &[&str], left: usize) -> Self {
        let column = |(at, head): (usize, &&str)| Column::new(head, head, Some(at < left));
        let columns = heads.iter().enumerate().map(column).collect();
        Self::of(columns)
    }

    fn of(columns: Vec<Column>) -> Self {
        Self { title: String::new(), columns, rows: Vec::new(), spare: 0, keeps_ends: false }
    }

    /// The table; its last `spare` columns are left out if it is too wide.
    #[must_use]
    pub fn with_spare(self, spare: usize) -> Self {
        Self { spare, ..self }
    }

    /// The table; names that are too long keep their ends.
    #[must_use]
    pub fn keeping_ends(self) -> Self {
        Self { keeps_ends: true, ..self }
    }

    /// The table; its last column has words too.
    #[must_use]
    pub fn with_words_last(self) -> Self {
        let last = self.columns.len() - 1;
        self.with_words_at(last)
    }

    /// The table; this column has words too.
    #[must_use]
    pub fn with_words_at(mut self, at: usize) -> Self {
        self.columns[at].is_left = Some(true);
        self
    }

    /// The table with a title.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// Adds a row of texts, one for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.into_iter().map(Value::Text).collect());
    }

    /// Adds a row of one text, which spans all columns.
    pub fn span(&mut self, text: impl Into<String>) {
        self.rows.push(vec![Value::Text(text.into())]);
    }

    /// Adds a row of one text as a heading for the rows below.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.rows.push(vec![Value::Heading(text.into())]);
    }

    /// True if there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The width of the table with whole names.
    #[must_use]
    pub fn width(&self, indent: &str) -> usize {
        let widths = widths(&self.lines());
        indent.width() + widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    /// Its title and its lines at full width; empty if there are no rows.
    #[must_use]
    pub fn text(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        format!("{}\n{}", self.title, self.render(INDENT, usize::MAX, Style::plain()))
    }

    /// Its lines, with this indent and at most `width` columns if names allow it.
    #[must_use]
    pub fn render(&self, indent: &str, width: usize, style: Style) -> String {
        if self.spare > 0 && self.width(indent) > width {
            let mut narrow = Self { spare: 0, ..self.clone() };
            let columns = narrow.columns.len() - self.spare;
            narrow.columns.truncate(columns);
            narrow.rows.iter_mut().for_each(|row| row.truncate(columns));
            return narrow.render(indent, width, style);
        }
        let lines = self.lines();
        let mut widths = widths(&lines);
        let whole = self.width(indent);
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(whole.saturating_sub(width)).max((*first).min(NAME_MIN));
        }
        let left: Vec<bool> = (0..self.columns.len()).map(|at| self.is_left(at)).collect();
        let is_heading = |row: &Vec<Value>| matches!(row[..], [Value::Heading(_)]);
        let shortened = if self.keeps_ends { end } else { shortened };
        let line = |cells: &Vec<String>| {
            if let ([cell], true) = (&cells[..], widths.len() > 1) {
                return format!("{indent}{}", shortened(cell, width.saturating_sub(indent.width())));
            }
            let padded = cells.iter().zip(&widths).zip(&left).map(|((cell, wide), left)| {
                let cell = shortened(cell, *wide);
                let pad = " ".repeat(wide - cell.width());
                if *left { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
            });
            let cells = padded.collect::<Vec<_>>().join(&" ".repeat(GAP));
            format!("{indent}{cells}").trim_end().to_owned()
        };
        let heads = lines.len() - self.rows.len();
        let lines = lines.iter().map(line).enumerate();
        let lines = lines.map(|(at, line)| match at.checked_sub(heads) {
            None => style.label(&line) + "\n",
            Some(at) if is_heading(&self.rows[at]) => style.bold(&line) + "\n",
            Some(_) => line + "\n",
        });
        lines.collect()
    }

    /// Its lines as a table of Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let lines = self.lines();
        let heads = lines.len() - self.rows.len();
        let cell = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|");
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let joined = |at: usize| {
            let words = lines[..heads].iter().filter_map(|line| line.get(at)).filter(|word| !word.is_empty());
            words.map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        let columns = 0..self.columns.len();
        let head: Vec<String> = columns.clone().map(joined).collect();
        let rule: String = columns.map(|at| if self.is_left(at) { "| --- " } else { "| ---: " }).collect();
        let rows: String = lines[heads..].iter().map(|cells| line(cells)).collect();
        format!("{}{rule}|\n{rows}", line(&head))
    }

    /// Its lines as a table of HTML, in which the cells of figures have the class `n`.
    #[must_use]
    pub fn html(&self) -> String {
        let lines = self.lines();
        let heads = lines.len() - self.rows.len();
        let line = |(at, cells): (usize, &Vec<String>)| {
            let tag = if at < heads { "th" } else { "td" };
            let cell = |(at, text): (usize, &String)| {
                let class = match self.is_left(at) {
                    _ if cells.len() == 1 => format!(" colspan=\"{}\"", self.columns.len()),
                    true => String::new(),
                    false => " class=\"n\"".to_owned(),
                };
                format!("<{tag}{class}>{}</{tag}>", escape(text))
            };
            let cells: String = cells.iter().enumerate().map(cell).collect();
            format!("<tr>{cells}</tr>\n")
        };
        format!("<table>\n{}</table>\n", lines.iter().enumerate().map(line).collect::<String>())
    }

    fn is_left(&self, at: usize) -> bool {
        let is_text = |row: &Vec<Value>| matches!(row.get(at), Some(Value::Text(_)));
        self.columns[at].is_left.unwrap_or_else(|| self.rows.iter().any(is_text))
    }

    /// The heads, aligned to the bottom, and the rows.
    fn lines(&self) -> Vec<Vec<String>> {
        let depth = self.columns.iter().map(|column| column.head.len()).max().unwrap_or(0);
        let above = (0..depth).map(|line| {
            let of = |column: &Column| {
                let at = (line + column.head.len()).checked_sub(depth);
                at.map_or_else(String::new, |at| column.head[at].clone())
            };
            self.columns.iter().map(of).collect()
        });
        let cell = |value: &Value| value.to_string().replace(char::is_control, "?");
        let above = above.filter(|line: &Vec<String>| line.iter().any(|head| !head.is_empty()));
        above.chain(self.rows.iter().map(|row| row.iter().map(cell).collect())).collect()
    }
}

/// The width of each column.
fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let cells = move |at: usize| {
        let lines = lines.iter().filter(move |line| line.len() > 1 || columns == 1);
        lines.filter_map(move |line| line.get(at))
    };
    (0..columns).map(|at| cells(at).map(|cell| cell.width()).max().unwrap_or(0)).collect()
}

/// The end of `text` in at most `width` columns, after an ellipsis if the beginning is missing.
#[must_use]
pub fn end(text: &str, width: usize) -> String {
    let mut rests = text.char_indices().map(|(at, _)| &text[at..]);
    match rests.find(|rest| rest.width() < width) {
        Some(rest) if text.width() > width => format!("…{rest}"),
        _ => text.to_owned(),
    }
}

/// The bar for this part of the largest figure.
#[must_use]
pub fn bar(part: f64) -> String {
    "#".repeat((part * BAR as f64).ceil() as usize)
}

/// The number of terminal columns of `text`.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.width()
}

/// `text` in at most `width` columns, with an ellipsis if the end is missing.
#[must_use]
pub fn shortened(text: &str, width: usize) -> String {
    fit(text, width as f64, |text| text.width() as f64)
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let row = |row: &Vec<Value>| {
            let fields = self.columns.iter().zip(row);
            let value = |value: &Value| serde_json::to_value(value).unwrap_or_default();
            fields.map(|(column, v)| (column.key.clone(), value(v))).collect::<serde_json::Map<_, _>>()
        };
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("title", &self.title)?;
        map.serialize_entry("rows", &self.rows.iter().map(row).collect::<Vec<_>>())?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Interval;

    fn sample() -> Table {
        let mut table =
            Table::new("Title", &[("size_bytes", "size"), ("cost_cycles", "cost|(cycles)"), ("note", "")]);
        table.rows.push(vec![Value::text("4 KiB"), Value::Number(1234.4), Value::Nothing]);
        let interval = Interval { estimate: 1.5, low: 1.0, high: 2.0 };
        table.rows.push(vec![Value::text("1 MiB"), Value::Ratio(interval), Value::text("well")]);
        table
    }

    #[test]
    fn heads_wrap_and_columns_follow_their_cells() {
        assert_eq!(
            sample().text(),
            "Title\n                      cost\n  size            (cycles)\n  4 KiB               1234  -\n\
             \x20 1 MiB  1.50 [1.00, 2.00]  well\n"
        );
        assert_eq!(Table::new("Title", &[("a", "a")]).text(), "", "no rows, no table");
    }

    #[test]
    fn markdown_has_one_head_and_the_same_cells() {
        let mut table = Table::plain(&["name", "of all"], 1);
        table.row(vec!["a|b".to_owned(), "1 %".to_owned()]);
        assert_eq!(table.markdown(), "| name | of all |\n| --- | ---: |\n| a\\|b | 1 % |\n");
    }

    #[test]
    fn html_marks_figures_and_has_no_markup_of_others() {
        let mut table = Table::plain(&["name", "of all"], 1);
        table.row(vec!["<b>".to_owned(), "1 %".to_owned()]);
        let rows = "<tr><th>name</th><th class=\"n\">of all</th></tr>\n\
            <tr><td>&lt;b&gt;</td><td class=\"n\">1 %</td></tr>\n";
        assert_eq!(table.html(), format!("<table>\n{rows}</table>\n"));
    }

    #[test]
    fn json_has_named_fields() {
        let value = serde_json::to_value(sample()).unwrap();
        assert_eq!(value["rows"][0]["cost_cycles"], 1234.4);
        assert_eq!(value["rows"][0]["note"], serde_json::Value::Null);
        assert_eq!(value["rows"][1]["cost_cycles"]["low"], 1.0);
    }

    #[test]
    fn names_are_shortened_and_figures_are_not() {
        let mut table = Table::plain(&["name", "mean"], 1);
        table.row(vec!["a very long name indeed".into(), "123,456 µs".into()]);
        let text = table.render("", 24, Style::plain());
        assert_eq!(text.lines().nth(1).unwrap(), "a very long…  123,456 µs");
        let narrow = table.render("", 5, Style::plain());
        assert_eq!(narrow.lines().nth(1).unwrap(), "a very…   123,456 µs");
    }

    #[test]
    fn spare_columns_go_first_and_headings_span_all() {
        let mut table = Table::plain(&["path", "n", "std"], 1).with_spare(1).keeping_ends();
        table.heading("-- files");
        table.row(vec!["/a/long/path.c".into(), "1".into(), "2 ns".into()]);
        let text = |width| table.render("", width, Style::plain());
        assert_eq!(text(30), "path            n   std\n-- files\n/a/long/path.c  1  2 ns\n");
        assert_eq!(text(11), "path      n\n-- files\n…/path.c  1\n");
    }

    #[test]
    fn the_last_column_may_be_words() {
        let mut table = Table::plain(&["name", "n", "to"], 1).with_words_last();
        table.row(vec!["a".into(), "1".into(), "wait".into()]);
        table.row(vec!["b".into(), "22".into(), "tick, wait".into()]);
        assert_eq!(
            table.render("", 80, Style::plain()),
            "name   n  to\na      1  wait\nb     22  tick, wait\n"
        );
    }

    #[test]
    fn control_characters_are_replaced() {
        let mut table = Table::plain(&["name"], 1);
        table.row(vec!["\x1b[31mred".into()]);
        assert_eq!(table.render("", 80, Style::plain()).lines().nth(1), Some("?[31mred"));
    }

    #[test]
    fn only_text_that_does_not_fit_is_shortened() {
        assert_eq!(shortened("日本語", 6), "日本語");
        assert_eq!(shortened("日本語", 5), "日本…");
        assert_eq!(shortened("abc", 2), "a…");
        assert_eq!(["/a/b.c", "b.c"].map(|path| end(path, 4)), ["…b.c", "b.c"]);
    }
}
