//! Figures: the papers' plots as data for the JSON, drawn as a [`Chart`].

use serde::Serialize;
use vellum_measure::Unit;
use vellum_report::plot::{Chart, Quantity, Scaling, Shape};

/// A scale with its label.
#[derive(Debug, Clone, Serialize)]
pub enum Axis {
    /// Sizes in bytes, by powers of two.
    Bytes(String),
    /// Positive values, by powers of ten.
    Log(String),
    /// Values, from zero or below.
    Linear(String),
    /// Names side by side; values are places, from 0.
    Names(String, Vec<String>),
}

impl Axis {
    fn quantity(&self) -> Quantity {
        let plain = Unit::Other(String::new());
        match self {
            Self::Bytes(label) => Quantity::new(label, Unit::Bytes, Scaling::Ratios),
            Self::Log(label) => Quantity::new(label, plain, Scaling::Ratios),
            Self::Linear(label) => Quantity::new(label, plain, Scaling::Even),
            Self::Names(label, names) => Quantity::names(label, names.clone()),
        }
    }
}

/// A series of points.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Its name.
    pub label: String,
    /// The shape in which it is drawn.
    pub shape: Shape,
    /// Its points in the axes' own units.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A line of ours.
    pub fn line(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), shape: Shape::Line, points }
    }

    /// A published line.
    pub fn published(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), shape: Shape::Published, points }
    }

    /// Bars.
    pub fn bars(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), shape: Shape::Bars, points }
    }
}

/// A plot.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// File name without ending.
    pub name: String,
    /// The title.
    pub title: String,
    /// The horizontal scale.
    pub x: Axis,
    /// The vertical scale.
    pub y: Axis,
    /// The series.
    pub series: Vec<Series>,
}

impl Figure {
    /// The plot as SVG text.
    #[must_use]
    pub fn svg(&self) -> String {
        let chart = Chart::new(&self.title, self.x.quantity(), self.y.quantity());
        let with = |chart: Chart, of: &Series| chart.with(of.shape, &of.label, &of.points);
        self.series.iter().fold(chart, with).svg()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_shows_its_labels_and_skips_points_outside_its_scale() {
        let sizes = |y: f64| vec![(4096.0, y), (1048576.0, 10.0 * y), (1073741824.0, 0.0)];
        let figure = Figure {
            name: "f".into(),
            title: "Costs".into(),
            x: Axis::Bytes("block size".into()),
            y: Axis::Log("cycles per page".into()),
            series: vec![Series::line("ours", sizes(30.0)), Series::published("theirs", sizes(3000.0))],
        };
        let svg = figure.svg();
        for part in
            ["<svg", "Costs", "block size", "cycles per page", "ours", "theirs", "1,000", "4 KiB", "</svg>"]
        {
            assert!(svg.contains(part), "{part:?} is missing");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
