//! Scatter plots of observations in their order, for [`super::order`] and [`super::pairs`].

use super::axis::Axis;
use super::palette::{CLASSES, Ink, class};
use super::picture::{Detail, Mark};
use super::subject::Shown;
use super::thin::{Point, thin};
use vellum_measure::Unit;

/// Up to this many observations are drawn singly, in any backend.
const DOTS_MAX: usize = 2000;

/// The state of drawing the observations of a picture.
pub(crate) struct Scatter {
    pub(crate) x: Axis,
    panels: usize,
    observations: usize,
    caused: bool,
    detail: Detail,
    shapes: usize,
}

impl Scatter {
    /// For panels that show these observations; each is called `what`.
    pub(crate) fn new(shown: &[Shown<'_>], what: &str, detail: Detail) -> Self {
        let most = shown.iter().map(|one| one.of).max().unwrap_or(0);
        let observations = shown.iter().map(|one| one.values.len()).sum();
        let caused = shown.iter().flat_map(|one| &one.values).any(|value| value.cause.is_some());
        let (x, panels) = (Axis::counts(what, most as f64), shown.len().max(1));
        Self { x, panels, observations, caused, detail, shapes: 0 }
    }

    fn thins(&self) -> Option<usize> {
        self.detail.shapes_max.filter(|_| self.observations > DOTS_MAX)
    }

    /// The marks for one panel: ordinary observations below, those with a cause on top.
    pub(crate) fn marks(&mut self, shown: &Shown<'_>, y: &Axis) -> Vec<Mark> {
        let points = shown.values.iter().map(|value| Point {
            x: value.number as f64,
            y: value.value,
            class: class(value.cause),
        });
        let grid = (self.detail.columns, (self.detail.rows / self.panels).max(1));
        let shapes_max = self.thins().map(|max| max / self.panels);
        let thinned = thin(points.collect(), (&self.x.range, &y.range), grid, shapes_max);
        self.shapes += thinned.shapes();
        let mut marks = Vec::new();
        for (ink, boxes) in [(Ink::Tint, &thinned.crowds), (Ink::Series(0), &thinned.middles)] {
            if !boxes.is_empty() {
                marks.push(Mark::Crowds(ink, boxes.clone()));
            }
        }
        marks.extend((0..CLASSES).flat_map(|class| thinned.marks(class)));
        marks
    }

    /// The note on how many observations are drawn, and how; they are called `what`.
    pub(crate) fn note(&self, what: &str) -> String {
        let count = Unit::Count.scaled(self.observations as f64);
        match self.thins() {
            None if self.detail.shapes_max.is_none() && self.caused => {
                format!("Each of {count} {what} is drawn; letters where a cause prevails.")
            }
            None => format!("Each of {count} {what} is drawn."),
            Some(_) => format!(
                "{count} {what} drawn as {} shapes: a dot is one, a bar several; a pale bar spans all of a crowd, its dark part the middle half.",
                Unit::Count.scaled(self.shapes as f64)
            ),
        }
    }
}
