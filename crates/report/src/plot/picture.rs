//! A picture before layout: panels one below the other over a common horizontal axis, marks in the data's own
//! units, a key, and notes. Each kind of plot builds one; [`super::vector`] and [`super::terminal`] draw it.

use super::axis::Axis;
use super::palette::Ink;
use super::text::fit;

/// Everything that a plot shows.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) panels: Vec<Panel>,
    pub(crate) key: Vec<Key>,
    /// Sentences on what the picture leaves out and how to read it.
    pub(crate) notes: Vec<String>,
}

/// A vertical axis and the marks over it.
#[derive(Debug)]
pub(crate) struct Panel {
    /// The series' name; empty if the key names the series.
    pub(crate) name: String,
    /// The remark at the right: the number of observations.
    pub(crate) remark: String,
    pub(crate) y: Axis,
    /// The marks, in drawing order; the last is on top.
    pub(crate) marks: Vec<Mark>,
}

impl Panel {
    /// The head above the panel, at the left. A long name is shortened; the quantity and its unit are not.
    pub(crate) fn head(&self, room: f64, wide: impl Fn(&str) -> f64) -> String {
        if self.name.is_empty() {
            return fit(&self.y.title, room, wide);
        }
        let what = format!(" · {}", self.y.title);
        let name = fit(&self.name, room - wide(&what), &wide);
        fit(&format!("{name}{what}"), room, wide)
    }
}

/// A drawn mark.
#[derive(Debug, PartialEq)]
pub(crate) enum Mark {
    /// One shape for each observation.
    Dots(Ink, Vec<(f64, f64)>),
    /// Bars side by side, each high enough to be seen.
    Bars(Ink, Vec<Box>),
    /// Many observations in a column, from the lowest to the highest.
    Crowds(Ink, Vec<Box>),
    /// Several observations close together, from the lowest to the highest.
    Runs(Ink, Vec<Box>),
    /// Corners joined by lines.
    Path { ink: Ink, points: Vec<(f64, f64)>, sign: Option<char> },
    /// A line across the panel.
    Rule(Ink, f64),
}

/// An upright rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Box {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) swatch: Swatch,
    pub(crate) label: String,
    /// Further details, one for each line.
    pub(crate) details: Vec<String>,
}

/// The sign before a label of the key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Swatch {
    Dot(Ink),
    Area(Ink),
    /// A line; in a terminal, the sign that it carries.
    Line(Ink, Option<char>),
}

/// The resolution of a backend, and its limit on shapes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail {
    /// The number of cells from left to right, and from bottom to top of all panels together.
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// The most bars side by side.
    pub(crate) bins: usize,
    /// The most shapes in a picture; `None` if shapes cost nothing and every observation is drawn.
    pub(crate) shapes_max: Option<usize>,
}
