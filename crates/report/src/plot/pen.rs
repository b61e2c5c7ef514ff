//! A backend of plotters', written to in whole units of the picture, each `scale` of its pixels.

use super::palette::{Ink, Shape};
use super::text::LINE;
use plotters::prelude::{Color, IntoFont, RGBColor};
use plotters_backend::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{DrawingBackend, DrawingErrorKind};

/// The radius of an ordinary observation's dot; shapes of causes are a little larger.
pub(super) const DOT: i32 = 2;
/// Any font that looks like the one widths are measured with.
const FONT: &str = "Roboto, Helvetica, Arial, sans-serif";

pub(super) type Drawn<B> = Result<(), DrawingErrorKind<<B as DrawingBackend>::ErrorType>>;

/// Draws on a backend.
pub(super) struct Pen<'a, B> {
    backend: &'a mut B,
    scale: i32,
}

impl<'a, B: DrawingBackend> Pen<'a, B> {
    pub(super) fn new(backend: &'a mut B, scale: i32) -> Self {
        Self { backend, scale }
    }

    pub(super) fn finish(self) -> Drawn<B> {
        self.backend.present()
    }

    fn at(&self, (x, y): (i32, i32)) -> (i32, i32) {
        (x * self.scale, y * self.scale)
    }

    pub(super) fn area(&mut self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn<B> {
        self.backend.draw_rect(self.at(from), self.at(to), &colour.filled(), true)
    }

    pub(super) fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn<B> {
        self.path(vec![from, to], colour, 1)
    }

    pub(super) fn path(&mut self, points: Vec<(i32, i32)>, colour: RGBColor, width: i32) -> Drawn<B> {
        let points: Vec<(i32, i32)> = points.into_iter().map(|point| self.at(point)).collect();
        self.backend.draw_path(points, &colour.stroke_width((width * self.scale).unsigned_abs()))
    }

    fn polygon(&mut self, (x, y): (i32, i32), corners: &[(i32, i32)], colour: RGBColor) -> Drawn<B> {
        let corners: Vec<(i32, i32)> = corners.iter().map(|(dx, dy)| self.at((x + dx, y + dy))).collect();
        self.backend.fill_polygon(corners, &colour.filled())
    }

    /// An observation.
    pub(super) fn dot(&mut self, ink: Ink, (x, y): (i32, i32)) -> Drawn<B> {
        let (colour, r) = (ink.colour(), DOT + 1);
        match ink.shape() {
            Shape::Disc => self.backend.draw_circle(
                self.at((x, y)),
                (DOT * self.scale).unsigned_abs(),
                &colour.filled(),
                true,
            ),
            Shape::Ring => {
                let style = colour.stroke_width(self.scale.unsigned_abs());
                self.backend.draw_circle(self.at((x, y)), (r * self.scale).unsigned_abs(), &style, false)
            }
            Shape::Square => self.area((x - r, y - r), (x + r, y + r), colour),
            Shape::Diamond => {
                self.polygon((x, y), &[(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)], colour)
            }
            Shape::Up => self.polygon((x, y), &[(0, -r - 1), (r + 1, r), (-r - 1, r)], colour),
            Shape::Down => self.polygon((x, y), &[(0, r + 1), (r + 1, -r), (-r - 1, -r)], colour),
            Shape::Cross => {
                self.path(vec![(x - r, y - r), (x + r, y + r)], colour, 1)?;
                self.path(vec![(x - r, y + r), (x + r, y - r)], colour, 1)
            }
            // Level, for what stands upright is a run.
            Shape::Stroke => self.path(vec![(x - r - 2, y), (x + r + 2, y)], colour, 2),
            Shape::Plus => {
                self.path(vec![(x - r - 1, y), (x + r + 1, y)], colour, 2)?;
                self.path(vec![(x, y - r - 1), (x, y + r + 1)], colour, 2)
            }
        }
    }

    pub(super) fn write(
        &mut self,
        text: &str,
        at: (i32, i32),
        size: f64,
        colour: RGBColor,
        (h, v): (HPos, VPos),
    ) -> Drawn<B> {
        if text.is_empty() {
            return Ok(());
        }
        let style =
            (FONT, size * LINE * f64::from(self.scale)).into_font().color(&colour).pos(Pos::new(h, v));
        self.backend.draw_text(text, &style, self.at(at))
    }
}
