//! The canvas for pictures in a terminal: cells with eight dots each.
//!
//! ```text
//!   a cell   1 4      each braille character is a set of eight dots, two wide and four high;
//!            2 5      the numbers are the order of the bits in Unicode
//!            3 6
//!            7 8
//! ```
//!
//! A cell shows all dots that were drawn in it. A letter for a cause, or a block of a bar, replaces the dots
//! of a cell, and hides dots drawn there later. Without colour, these characters alone carry all information.

use super::palette::Ink;
use std::fmt::Write as _;

/// Bits of the dots of a cell, by column and by row from the top.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
const BRAILLE: u32 = 0x2800;
/// Blocks that fill one to eight eighths of a cell from below.
pub(crate) const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    dots: u8,
    sign: Option<char>,
    ink: Option<Ink>,
}

/// Cells, from the top left.
#[derive(Debug)]
pub(crate) struct Canvas {
    pub(crate) width: usize,
    pub(crate) height: usize,
    cells: Vec<Cell>,
}

impl Canvas {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Self { width, height, cells: vec![Cell::default(); width * height] }
    }

    /// The dot nearest to a place (both coordinates from 0 to 1, from the left and from below); `None` for
    /// places outside.
    fn nearest(&self, (x, y): (f64, f64)) -> Option<(usize, usize)> {
        let within = |place: f64| (-1e-9..=1.0 + 1e-9).contains(&place);
        let dot = |place: f64, count: usize| {
            (place.clamp(0.0, 1.0) * (count.saturating_sub(1)) as f64).round() as usize
        };
        (within(x) && within(y)).then(|| (dot(x, 2 * self.width), dot(1.0 - y, 4 * self.height)))
    }

    /// The cell of a place, as column and row.
    pub(crate) fn cell(&self, place: (f64, f64)) -> Option<(usize, usize)> {
        self.nearest(place).map(|(x, y)| (x / 2, y / 4))
    }

    pub(crate) fn dot(&mut self, place: (f64, f64), ink: Ink) {
        if let Some(dot) = self.nearest(place) {
            self.set(dot, ink);
        }
    }

    fn set(&mut self, (x, y): (usize, usize), ink: Ink) {
        if let Some(cell) = self.cells.get_mut(y / 4 * self.width + x / 2) {
            cell.dots |= DOTS[x % 2][y % 4];
            if cell.sign.is_none() {
                cell.ink = Some(ink);
            }
        }
    }

    /// Sets all dots between two places.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink) {
        let (Some(from), Some(to)) = (self.nearest(from), self.nearest(to)) else { return };
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let along = |a: usize, b: usize, step: usize| {
            (a as f64 + (b as f64 - a as f64) * step as f64 / steps as f64).round() as usize
        };
        for step in 0..=steps {
            self.set((along(from.0, to.0, step), along(from.1, to.1, step)), ink);
        }
    }

    pub(crate) fn put(&mut self, (column, row): (usize, usize), sign: char, ink: Ink) {
        if column < self.width
            && let Some(cell) = self.cells.get_mut(row * self.width + column)
        {
            (cell.sign, cell.ink) = (Some(sign), Some(ink));
        }
    }

    pub(crate) fn is_free(&self, (column, row): (usize, usize)) -> bool {
        self.cells.get(row * self.width + column).is_none_or(|cell| cell.dots == 0 && cell.sign.is_none())
    }

    /// Fills eighths `from..to` of a column, counted from below; the part below `from` is already filled. A
    /// cell has only one ink, the ink of its larger part; `sign` is drawn only if that part is this bar's.
    pub(crate) fn bar(&mut self, column: usize, (from, to): (usize, usize), sign: Option<char>, ink: Ink) {
        for level in from / 8..to.div_ceil(8).min(self.height) {
            let (below, filled) = (from.saturating_sub(8 * level), (to - 8 * level).min(8));
            let (cell, block) = ((column, self.height - 1 - level), EIGHTHS[filled - 1]);
            let before = self.cells[cell.1 * self.width + cell.0].ink;
            match before {
                Some(before) if filled - below < below => self.put(cell, block, before),
                _ => self.put(cell, sign.unwrap_or(block), ink),
            }
        }
    }

    /// The number of cells of a row to write: up to the last that is not empty.
    pub(crate) fn used(&self, row: usize) -> usize {
        let cells = self.cells.get(row * self.width..(row + 1) * self.width).unwrap_or_default();
        cells.iter().rposition(|cell| cell.dots != 0 || cell.sign.is_some()).map_or(0, |last| last + 1)
    }

    /// The rows, from the top. With `colour`, escape sequences set the colours, and each row ends with a
    /// reset.
    pub(crate) fn rows(&self, colour: bool) -> Vec<String> {
        let rows = self.cells.chunks(self.width.max(1)).enumerate();
        rows.map(|(row, cells)| {
            let mut text = String::new();
            let mut now = None;
            for cell in &cells[..self.used(row)] {
                let sign = match (cell.sign, cell.dots) {
                    (Some(sign), _) => sign,
                    (None, 0) => ' ',
                    (None, dots) => char::from_u32(BRAILLE + u32::from(dots)).unwrap_or(' '),
                };
                let wanted = cell.ink.map(Ink::terminal).filter(|_| colour && sign != ' ');
                if wanted != now {
                    // A write into a string cannot fail.
                    let _ = match wanted {
                        Some(number) => write!(text, "\x1b[38;5;{number}m"),
                        None => write!(text, "\x1b[0m"),
                    };
                    now = wanted;
                }
                text.push(sign);
            }
            if now.is_some() {
                text.push_str("\x1b[0m");
            }
            text
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Cause;

    const INK: Ink = Ink::Series(0);

    #[test]
    fn dots_gather_in_their_cell() {
        let mut canvas = Canvas::new(2, 1);
        canvas.dot((0.0, 0.0), INK);
        canvas.dot((0.0, 1.0), INK);
        canvas.dot((1.0, 1.0), INK);
        canvas.dot((1.5, 0.5), INK);
        assert_eq!(canvas.rows(false), ["⡁⠈"]);
    }

    #[test]
    fn a_line_has_no_gaps() {
        let mut canvas = Canvas::new(4, 2);
        canvas.line((0.0, 0.0), (1.0, 1.0), INK);
        assert_eq!(canvas.rows(false), ["  ⡠⠊", "⡠⠊"]);
    }

    #[test]
    fn signs_replace_dots_and_keep_their_colour() {
        let mut canvas = Canvas::new(3, 1);
        canvas.dot((0.5, 0.5), INK);
        canvas.put((1, 0), 'p', Ink::Cause(Cause::Preemption));
        canvas.dot((0.5, 0.5), INK);
        assert_eq!(canvas.rows(false), [" p"]);
        assert_eq!(
            canvas.rows(true),
            [format!(" \x1b[38;5;{}mp\x1b[0m", Ink::Cause(Cause::Preemption).terminal())]
        );
        assert!(canvas.is_free((0, 0)) && !canvas.is_free((1, 0)));
    }

    #[test]
    fn bars_fill_eighths() {
        let mut canvas = Canvas::new(3, 2);
        canvas.bar(0, (0, 1), None, INK);
        canvas.bar(1, (0, 12), None, INK);
        canvas.bar(2, (0, 8), None, INK);
        canvas.bar(2, (8, 16), Some('f'), INK);
        assert_eq!(canvas.rows(false), [" ▄f", "▁██"]);
        canvas.bar(1, (12, 13), Some('f'), Ink::Cause(Cause::MinorFault));
        assert_eq!(canvas.rows(false), [" ▅f", "▁██"], "one eighth on four is not the greater part");
    }
}
