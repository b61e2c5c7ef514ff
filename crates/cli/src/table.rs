//! Tables for people: aligned columns, names at the left, figures at the right.
//!
//! A table that would be wider than its place shortens its names (the first column), never its figures.

use crate::style::Style;
use unicode_width::UnicodeWidthStr;

/// Columns between two cells.
const GAP: usize = 2;
/// Names are not shortened below this.
const NAME_MIN: usize = 8;

/// Rows of cells under heads.
#[derive(Debug)]
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// How many columns, from the first, are read from the left.
    left: usize,
    /// Whether the last column is read from the left too.
    words_last: bool,
}

impl Table {
    /// A table without rows, of which the first `left` columns are words.
    pub(crate) fn new(heads: &[&'static str], left: usize) -> Table {
        Table { heads: heads.to_vec(), rows: Vec::new(), left, words_last: false }
    }

    /// The same, of which the last column is words too.
    pub(crate) fn with_words_last(self) -> Table {
        Table { words_last: true, ..self }
    }

    /// Adds a row: a cell for each head. What would steer a terminal becomes a question mark.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        let clean = |cell: String| cell.replace(char::is_control, "?");
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How wide the table is with whole names.
    pub(crate) fn width(&self, indent: &str) -> usize {
        let widths = self.widths();
        indent.width() + widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    /// How wide each column is.
    fn widths(&self) -> Vec<usize> {
        let cells = |at: usize| self.rows.iter().filter_map(move |row| row.get(at));
        let widest = |(at, head): (usize, &&str)| {
            cells(at).map(|cell| cell.width()).chain([head.width()]).max().unwrap_or(0)
        };
        self.heads.iter().enumerate().map(widest).collect()
    }

    /// The table as lines that begin with `indent` and are at most `width` columns where names allow it.
    pub(crate) fn render(&self, indent: &str, width: usize, style: Style) -> String {
        let mut widths = self.widths();
        let whole = self.width(indent);
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(whole.saturating_sub(width)).max((*first).min(NAME_MIN));
        }
        let line = |cells: Vec<&str>| {
            let mut line = indent.to_owned();
            for (at, (cell, wide)) in cells.iter().zip(&widths).enumerate() {
                let cell = shortened(cell, *wide);
                let pad = " ".repeat(wide - cell.width());
                let left = at < self.left || (self.words_last && at + 1 == widths.len());
                line += &if left { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
                line += &" ".repeat(if at + 1 < widths.len() { GAP } else { 0 });
            }
            line.trim_end().to_owned()
        };
        let mut text = style.label(&line(self.heads.clone()));
        for row in &self.rows {
            text.push('\n');
            text += &line(row.iter().map(String::as_str).collect());
        }
        text + "\n"
    }
}

/// `text` in at most `width` columns, with an ellipsis where something is missing.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        let longer = format!("{short}{character}");
        if longer.width() + 1 > width {
            break;
        }
        short = longer;
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_left_figures_right() {
        let mut table = Table::new(&["name", "n", "mean"], 1);
        table.row(vec!["BASE".into(), "1,000".into(), "486 µs".into()]);
        table.row(vec!["a longer name".into(), "2".into(), "9 ns".into()]);
        let text = table.render("  ", 80, Style::PLAIN);
        assert_eq!(
            text,
            "  name               n    mean\n  BASE           1,000  486 µs\n  a longer name      2    9 ns\n"
        );
    }

    #[test]
    fn names_give_way_and_figures_do_not() {
        let mut table = Table::new(&["name", "mean"], 1);
        table.row(vec!["a very long name indeed".into(), "123,456 µs".into()]);
        let text = table.render("", 24, Style::PLAIN);
        assert_eq!(text.lines().nth(1).unwrap(), "a very long…  123,456 µs");
        let narrow = table.render("", 5, Style::PLAIN);
        assert_eq!(narrow.lines().nth(1).unwrap(), "a very …  123,456 µs");
    }

    #[test]
    fn the_last_column_may_be_words() {
        let mut table = Table::new(&["name", "n", "to"], 1).with_words_last();
        table.row(vec!["a".into(), "1".into(), "wait".into()]);
        table.row(vec!["b".into(), "22".into(), "tick, wait".into()]);
        assert_eq!(
            table.render("", 80, Style::PLAIN),
            "name   n  to\na      1  wait\nb     22  tick, wait\n"
        );
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let mut table = Table::new(&["name"], 1);
        table.row(vec!["\x1b[31mred".into()]);
        assert_eq!(table.render("", 80, Style::PLAIN).lines().nth(1), Some("?[31mred"));
    }

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(shortened("日本語", 6), "日本語");
        assert_eq!(shortened("日本語", 5), "日本…");
        assert_eq!(shortened("abc", 2), "a…");
    }
}
