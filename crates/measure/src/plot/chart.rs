//! Lines over a scale: what was computed rather than observed, such as a working-set curve.
//!
//! Scales are even or by ratios. Lines are joined in the order of their points; a stem is a thin line from the ground up to one point, for
//! the place on a curve that is spoken of.
//!
//! Invariant: points that have no place on a scale (no number, or none above zero where ratios count) are left out, and the picture
//! says how many.

use super::axis::Axis;
use super::palette::Ink;
use super::picture::{Key, Mark, Panel, Picture, Swatch};
use super::subject::clean;
use super::{Plot, PlotError, SERIES_MAX, png, terminal, vector};
use crate::Unit;

/// How values lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// Evenly, from zero.
    Even,
    /// By ratios: powers of two for bytes, else of ten.
    Ratios,
}

/// What an axis shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity {
    name: String,
    unit: Unit,
    scaling: Scaling,
}

impl Quantity {
    /// A quantity in a unit.
    #[must_use]
    pub fn new(name: impl Into<String>, unit: Unit, scaling: Scaling) -> Self {
        Self { name: name.into(), unit, scaling }
    }

    fn axis(&self, values: impl Iterator<Item = f64>) -> Axis {
        let name = clean(&self.name);
        match self.scaling {
            Scaling::Even => Axis::around(&name, &self.unit, values, true),
            Scaling::Ratios => Axis::ratios(&name, &self.unit, values),
        }
    }

    fn has_place(&self, value: f64) -> bool {
        value.is_finite() && (self.scaling == Scaling::Even || value > 0.0)
    }
}

/// Lines over a scale.
#[derive(Debug, Clone)]
pub struct Chart {
    title: String,
    x: Quantity,
    y: Quantity,
    lines: Vec<(String, Vec<(f64, f64)>)>,
    stems: Vec<(String, (f64, f64))>,
    notes: Vec<String>,
    /// Points without a place.
    left_out: usize,
}

impl Chart {
    /// A chart without lines.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Quantity, y: Quantity) -> Self {
        let (lines, stems, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { title: title.into(), x, y, lines, stems, notes, left_out: 0 }
    }

    /// Adds a line through these points, in the units of the quantities.
    ///
    /// # Errors
    /// [`PlotError::TooMany`] beyond [`SERIES_MAX`] lines.
    pub fn line(mut self, name: impl Into<String>, points: &[(f64, f64)]) -> Result<Self, PlotError> {
        if self.lines.len() == SERIES_MAX {
            return Err(PlotError::TooMany { count: SERIES_MAX + 1 });
        }
        let placed = points.iter().copied().filter(|point| self.has_place(*point));
        let placed: Vec<(f64, f64)> = placed.collect();
        self.left_out += points.len() - placed.len();
        self.lines.push((name.into(), placed));
        Ok(self)
    }

    /// Adds a stem up to this point.
    #[must_use]
    pub fn stem(mut self, name: impl Into<String>, point: (f64, f64)) -> Self {
        if self.has_place(point) {
            self.stems.push((name.into(), point));
        } else {
            self.left_out += 1;
        }
        self
    }

    /// Adds a sentence below the picture.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The picture as an SVG document, 900 units wide.
    #[must_use]
    pub fn svg(&self) -> String {
        vector::svg(&self.picture())
    }

    /// The picture as a PNG file, 1800 pixels wide.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        png::png(&self.picture())
    }

    /// The picture as `height` lines of at most `width` columns, as [`Plot::terminal`].
    #[must_use]
    pub fn terminal(&self, width: usize, height: usize, colour: bool) -> String {
        let (width, height) = (width.max(Plot::COLUMNS_MIN), height.max(Plot::LINES_MIN));
        terminal::draw(&self.picture(), (width, height), colour)
    }

    fn has_place(&self, (x, y): (f64, f64)) -> bool {
        self.x.has_place(x) && self.y.has_place(y)
    }

    fn picture(&self) -> Picture {
        let all = || {
            let lines = self.lines.iter().flat_map(|(_, points)| points);
            lines.chain(self.stems.iter().map(|(_, point)| point))
        };
        let x = self.x.axis(all().map(|point| point.0));
        let y = self.y.axis(all().map(|point| point.1));
        let several = self.lines.len() > 1;
        let (mut marks, mut key) = (Vec::new(), Vec::new());
        for (name, (at, top)) in &self.stems {
            let points = vec![(*at, y.range.start), (*at, *top)];
            marks.push(Mark::Path { ink: Ink::Level, points, sign: None });
            key.push(Key { swatch: Swatch::Line(Ink::Level, None), label: clean(name), details: Vec::new() });
        }
        for (place, (name, points)) in self.lines.iter().enumerate() {
            let sign = if several { char::from_digit(place as u32 + 1, 10) } else { None };
            let ink = Ink::Series(place);
            marks.push(Mark::Path { ink, points: points.clone(), sign });
            let key_of = |swatch| Key { swatch, label: clean(name), details: Vec::new() };
            key.insert(place, key_of(Swatch::Line(ink, sign)));
        }
        let mut notes: Vec<String> = self.notes.iter().map(|note| clean(note)).collect();
        if self.left_out > 0 {
            notes.push(format!("{} without a place on the scales are left out.", points(self.left_out)));
        }
        let panels = vec![Panel { name: String::new(), remark: String::new(), y, marks }];
        Picture { title: clean(&self.title), x, panels, key, notes }
    }
}

fn points(count: usize) -> String {
    if count == 1 { "1 point".to_owned() } else { format!("{count} points") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let x = Quantity::new("window", Unit::Nanoseconds, Scaling::Ratios);
        let y = Quantity::new("memory", Unit::Bytes, Scaling::Even);
        let curve: Vec<(f64, f64)> = (0..60).map(|i| (1.3f64.powi(i) * 1e3, f64::from(i) * 4096.0)).collect();
        Chart::new("z(T)", x, y).line("prog", &curve).unwrap().stem("knee", (1e6, 26.0 * 4096.0))
    }

    #[test]
    fn a_curve_in_a_terminal_fits_and_names_its_scales() {
        for (width, height) in [(80, 24), (50, 14)] {
            let text = chart().note("S is 100 µs.").terminal(width, height, false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(text.lines().count() <= height, "{text}");
            for word in ["z(T)", "window", "memory (KiB)", "knee", "ms"] {
                assert!(text.contains(word), "{word} is missing:\n{text}");
            }
        }
    }

    #[test]
    fn files_are_drawn() {
        let svg = chart().svg();
        assert!(svg.starts_with("<svg") && svg.contains("window") && svg.contains("prog"));
        assert!(chart().png().unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn what_has_no_place_is_counted() {
        let chart = chart().line("more", &[(0.0, 1.0), (1e4, f64::NAN), (1e4, 5.0)]).unwrap();
        assert!(
            chart.stem("nowhere", (-1.0, 1.0)).terminal(80, 24, false).contains("3 points without a place")
        );
    }

    #[test]
    fn lines_have_a_limit() {
        let full = (1..SERIES_MAX).try_fold(chart(), |chart, _| chart.line("one", &[(1.0, 1.0)])).unwrap();
        assert!(matches!(full.line("more", &[]), Err(PlotError::TooMany { .. })));
    }
}
