//! A pen that writes SVG: shapes and text in whole units of the picture.
//!
//! Attributes with SVG's default value are left out: they would be a third of the file.

use super::palette::{Ink, Rgb, Shape};
use crate::escape;
use std::fmt::Write as _;

/// The radius of an ordinary observation's dot; shapes of causes are a little larger.
pub(super) const DOT: i32 = 2;
/// Fonts that look like the one with which widths are computed.
const FONT: &str = "Roboto, Helvetica, Arial, sans-serif";

/// The end of a text that lies at its place.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The height of a text that lies at its place.
#[derive(Clone, Copy)]
pub(super) enum Height {
    Top,
    Centre,
}

/// Writes a document, one element on each line.
pub(super) struct Pen {
    svg: String,
}

impl Pen {
    pub(super) fn new((width, height): (i32, i32)) -> Self {
        let size = format!("width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\"");
        Self { svg: format!("<svg {size} xmlns=\"http://www.w3.org/2000/svg\">\n") }
    }

    pub(super) fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }

    /// Adds an element without content.
    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // A write into a string cannot fail.
        let _ = writeln!(self.svg, "<{element}/>");
    }

    pub(super) fn area(&mut self, (x, y): (i32, i32), to: (i32, i32), colour: Rgb) {
        let (width, height) = (to.0 - x, to.1 - y);
        self.put(format_args!(
            "rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\""
        ));
    }

    pub(super) fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb) {
        self.path(&[from, to], colour, 1);
    }

    pub(super) fn path(&mut self, points: &[(i32, i32)], colour: Rgb, width: i32) {
        let points = pairs(points);
        self.put(format_args!(
            "polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" points=\"{points}\""
        ));
    }

    fn polygon(&mut self, (x, y): (i32, i32), corners: &[(i32, i32)], colour: Rgb) {
        let corners: Vec<(i32, i32)> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        self.put(format_args!("polygon fill=\"{colour}\" points=\"{}\"", pairs(&corners)));
    }

    /// An observation.
    pub(super) fn dot(&mut self, ink: Ink, (x, y): (i32, i32)) {
        let (colour, r) = (ink.colour(), DOT + 1);
        match ink.shape() {
            Shape::Disc => {
                self.put(format_args!("circle cx=\"{x}\" cy=\"{y}\" r=\"{DOT}\" fill=\"{colour}\""));
            }
            Shape::Ring => self.put(format_args!(
                "circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1\""
            )),
            Shape::Square => self.area((x - r, y - r), (x + r, y + r), colour),
            Shape::Diamond => {
                self.polygon((x, y), &[(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)], colour);
            }
            Shape::Up => self.polygon((x, y), &[(0, -r - 1), (r + 1, r), (-r - 1, r)], colour),
            Shape::Down => self.polygon((x, y), &[(0, r + 1), (r + 1, -r), (-r - 1, -r)], colour),
            Shape::Cross => {
                self.line((x - r, y - r), (x + r, y + r), colour);
                self.line((x - r, y + r), (x + r, y - r), colour);
            }
            // A horizontal stroke, because vertical lines are runs.
            Shape::Stroke => self.path(&[(x - r - 2, y), (x + r + 2, y)], colour, 2),
            Shape::Plus => {
                self.path(&[(x - r - 1, y), (x + r + 1, y)], colour, 2);
                self.path(&[(x, y - r - 1), (x, y + r + 1)], colour, 2);
            }
        }
    }

    pub(super) fn write(
        &mut self,
        text: &str,
        (x, y): (i32, i32),
        size: f64,
        colour: Rgb,
        (anchor, height): (Anchor, Height),
    ) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let down = match height {
            Height::Top => "0.76em",
            Height::Centre => "0.5ex",
        };
        let text = escape(text);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x}\" y=\"{y}\" dy=\"{down}\" text-anchor=\"{anchor}\" font-family=\"{FONT}\" \
             font-size=\"{size}\" fill=\"{colour}\">\n{text}\n</text>"
        );
    }
}

/// Corners in the form of an attribute.
fn pairs(points: &[(i32, i32)]) -> String {
    points.iter().map(|(x, y)| format!("{x},{y} ")).collect()
}
