//! Plain tables for people: columns as wide as what stands in them, the first to the left, the others to the right.

/// Rows under a title and a head.
#[derive(Debug)]
pub(crate) struct Grid {
    title: String,
    rows: Vec<Vec<String>>,
}

/// Between columns.
const GAP: &str = "  ";

impl Grid {
    pub(crate) fn new(title: impl Into<String>, head: &[&str]) -> Self {
        Self { title: title.into(), rows: vec![head.iter().map(|name| (*name).to_owned()).collect()] }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// The table with a newline at the end; nothing where there are no rows.
    pub(crate) fn text(&self) -> String {
        if self.rows.len() < 2 {
            return String::new();
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let wide = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(wide).collect();
        let mut out = format!("{}\n", self.title);
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, wide))| match column {
                0 => format!("{cell:<wide$}"),
                _ => format!("{cell:>wide$}"),
            });
            out += cells.collect::<Vec<_>>().join(GAP).trim_end();
            out.push('\n');
        }
        out
    }
}

/// A figure that may be missing, with so many digits behind the point.
pub(super) fn fixed(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut grid = Grid::new("Title", &["µ", "figure"]);
        assert_eq!(grid.text(), "");
        grid.push(vec!["longer".into(), fixed(Some(1.25), 1)]);
        grid.push(vec!["x".into(), fixed(None, 1)]);
        assert_eq!(grid.text(), "Title\nµ       figure\nlonger     1.2\nx            -\n");
    }
}
