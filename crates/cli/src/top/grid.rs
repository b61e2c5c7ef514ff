//! The character cells of a screen: text with a style, and curves of braille dots, eight dots to a cell.
//!
//! Parts of a drawing outside the screen are clipped.

use std::fmt::Write as _;
use std::ops::Range;
use unicode_width::UnicodeWidthChar;

/// A colour, by its number in escape sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) colour: Option<Colour>,
    pub(super) bold: bool,
    pub(super) dim: bool,
    pub(super) reversed: bool,
}

impl Look {
    pub(super) const PLAIN: Look = Look { colour: None, bold: false, dim: false, reversed: false };
    pub(super) const BOLD: Look = Look { bold: true, ..Look::PLAIN };
    pub(super) const DIM: Look = Look { dim: true, ..Look::PLAIN };
    pub(super) const REVERSED: Look = Look { reversed: true, ..Look::PLAIN };

    pub(super) const fn of(colour: Colour) -> Look {
        Look { colour: Some(colour), ..Look::PLAIN }
    }

    /// The style's escape sequence, which first resets earlier styles.
    fn sequence(self, coloured: bool) -> String {
        let mut text = String::from("\x1b[0");
        for (is, number) in [(self.bold, 1), (self.dim, 2), (self.reversed, 7)] {
            if is {
                let _ = write!(text, ";{number}");
            }
        }
        if let Some(colour) = self.colour.filter(|_| coloured) {
            let _ = write!(text, ";{}", colour as u8);
        }
        text + "m"
    }
}

/// The cell after a character of two columns.
const COVERED: char = '\0';
/// The braille sign without dots, and the bits of its dots by column and row from the top.
const BRAILLE: u32 = 0x2800;
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// A part of the screen: columns and lines.
#[derive(Clone, Debug)]
pub(super) struct Area {
    pub(super) x: Range<usize>,
    pub(super) y: Range<usize>,
}

/// The cells, from the top left.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) width: usize,
    pub(super) height: usize,
    cells: Vec<(char, Look)>,
}

impl Grid {
    pub(super) fn new(width: usize, height: usize) -> Grid {
        Grid { width, height, cells: vec![(' ', Look::PLAIN); width * height] }
    }

    fn cell(&mut self, x: usize, y: usize) -> Option<&mut (char, Look)> {
        let is_inside = x < self.width && y < self.height;
        is_inside.then(|| &mut self.cells[y * self.width + x])
    }

    /// Writes into these columns of a line; returns the column behind the text.
    pub(super) fn put(&mut self, columns: Range<usize>, y: usize, text: &str, look: Look) -> usize {
        let mut x = columns.start;
        for sign in text.chars() {
            // Control characters have no width, and are omitted.
            let wide = sign.width().unwrap_or(0);
            if wide == 0 {
                continue;
            }
            if x + wide > columns.end.min(self.width) {
                break;
            }
            for column in x..x + wide {
                if let Some(cell) = self.cell(column, y) {
                    *cell = (if column == x { sign } else { COVERED }, look);
                }
            }
            x += wide;
        }
        x
    }

    /// Like [`Grid::put`], at the right end of the columns.
    pub(super) fn put_right(&mut self, columns: Range<usize>, y: usize, text: &str, look: Look) {
        let wide: usize = text.chars().map(|sign| sign.width().unwrap_or(0)).sum();
        self.put(columns.end.saturating_sub(wide).max(columns.start)..columns.end, y, text, look);
    }

    /// Changes the style of these columns of a line.
    pub(super) fn dress(&mut self, columns: Range<usize>, y: usize, change: impl Fn(&mut Look)) {
        for x in columns {
            if let Some((_, look)) = self.cell(x, y) {
                change(look);
            }
        }
    }

    /// Connects points by lines of dots. Coordinates are from 0 to 1, from the left and from the bottom.
    pub(super) fn curve(&mut self, area: &Area, points: &[(f64, f64)], look: Look) {
        let (wide, high) = (2 * area.x.len(), 4 * area.y.len());
        let dot = |place: f64, count: usize| (place * count.saturating_sub(1) as f64).round();
        let dots: Vec<(f64, f64)> =
            points.iter().map(|(x, y)| (dot(*x, wide), dot(1.0 - *y, high))).collect();
        for pair in dots.windows(2) {
            let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
            let steps = (to_x - x).abs().max((to_y - y).abs()).max(1.0);
            for step in 0..=steps as usize {
                let part = step as f64 / steps;
                let at = ((x + (to_x - x) * part).round(), (y + (to_y - y) * part).round());
                if (0.0..wide as f64).contains(&at.0) && (0.0..high as f64).contains(&at.1) {
                    self.dot(area, (at.0 as usize, at.1 as usize), look);
                }
            }
        }
    }

    fn dot(&mut self, area: &Area, (x, y): (usize, usize), look: Look) {
        if let Some((sign, before)) = self.cell(area.x.start + x / 2, area.y.start + y / 4) {
            let dots = u32::from(*sign).checked_sub(BRAILLE).filter(|dots| *dots < 256).unwrap_or(0);
            *sign = char::from_u32(BRAILLE + (dots | DOTS[x % 2][y % 4])).unwrap_or(' ');
            *before = look;
        }
    }

    #[cfg(test)]
    pub(super) fn lines(&self) -> Vec<String> {
        let line =
            |cells: &[(char, Look)]| cells.iter().map(|cell| cell.0).filter(|c| *c != COVERED).collect();
        self.cells.chunks(self.width.max(1)).map(line).collect()
    }

    /// Escape sequences that redraw the lines in which this differs from `before`, a grid of the same size.
    pub(super) fn escaped(&self, before: Option<&Grid>, coloured: bool) -> String {
        let mut text = String::new();
        let width = self.width.max(1);
        for (y, cells) in self.cells.chunks(width).enumerate() {
            if before.is_some_and(|before| before.cells[y * width..][..cells.len()] == *cells) {
                continue;
            }
            let _ = write!(text, "\x1b[{};1H", y + 1);
            let mut now = None;
            for (sign, look) in cells.iter().filter(|cell| cell.0 != COVERED) {
                if now != Some(*look) {
                    text += &look.sequence(coloured);
                    now = Some(*look);
                }
                text.push(*sign);
            }
        }
        if !text.is_empty() {
            text += "\x1b[0m";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_clipped_and_styles_reset() {
        let mut grid = Grid::new(5, 1);
        assert_eq!(grid.put(0..4, 0, "a\x1b漢漢", Look::of(Colour::Red)), 3);
        grid.put_right(3..5, 0, "b", Look::BOLD);
        grid.put(0..5, 7, "outside", Look::PLAIN);
        assert_eq!(grid.lines(), ["a漢 b"]);
        assert_eq!(grid.escaped(None, true), "\x1b[1;1H\x1b[0;31ma漢\x1b[0m \x1b[0;1mb\x1b[0m");
        assert!(!grid.escaped(None, false).contains("31"));
        assert_eq!(grid.escaped(Some(&grid), true), "");
    }

    #[test]
    fn curves_have_no_gaps() {
        let mut grid = Grid::new(4, 2);
        let area = Area { x: 0..4, y: 0..2 };
        grid.curve(&area, &[(0.0, 0.0), (1.0, 1.0)], Look::PLAIN);
        assert_eq!(grid.lines(), ["  ⡠⠊", "⡠⠊  "]);
        grid.curve(&area, &[(-3.0, 0.0), (0.0, 0.0)], Look::PLAIN);
    }
}
