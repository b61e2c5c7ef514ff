//! Figures: what the source plots, drawn again as SVG.
//!
//! Scales are computed here (powers of two for sizes, of ten for costs) and handed to the plotting library as plain lines, so
//! that labels stand on round values. Names of series stand beside the plot in a column of their own, never on top of data.
//! Colours are those of all of Vellum's pictures (`vellum_measure::plot::palette`), and what was published is grey and
//! dashed.

use crate::table::size;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::Serialize;
use std::ops::Range;
use vellum_measure::plot::number;
use vellum_measure::plot::palette::{GRID, PUBLISHED, SERIES, TEXT};

const WIDE: u32 = 900;
const HIGH: u32 = 480;
const LEGEND_WIDE: u32 = 210;
const FONT: &str = "sans-serif";

/// A scale and what it shows.
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
    fn label(&self) -> &str {
        match self {
            Self::Bytes(label) | Self::Log(label) | Self::Linear(label) | Self::Names(label, _) => label,
        }
    }

    /// A value's place on the scale; nothing for what has none.
    fn place(&self, value: f64) -> Option<f64> {
        let place = match self {
            Self::Bytes(_) => value.log2(),
            Self::Log(_) => value.log10(),
            Self::Linear(_) => value,
            Self::Names(..) => value + 0.5,
        };
        place.is_finite().then_some(place)
    }

    fn range(&self, places: impl Iterator<Item = f64>) -> Range<f64> {
        let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        match self {
            Self::Names(_, names) => 0.0..names.len() as f64,
            _ if low > high => 0.0..1.0,
            Self::Bytes(_) => low.floor()..(high.ceil().max(low.floor() + 1.0)),
            Self::Log(_) => low.floor()..(high.ceil().max(low.floor() + 1.0)),
            Self::Linear(_) => {
                let low = low.min(0.0);
                let span = (high.max(0.0) - low).max(1e-9);
                let foot = if low < 0.0 { low - 0.06 * span } else { 0.0 };
                foot..(low + 1.06 * span)
            }
        }
    }

    fn tick(&self, place: f64) -> String {
        let whole = place.fract() == 0.0;
        match self {
            Self::Bytes(_) if whole && place >= 0.0 => size(1 << place as u32),
            Self::Log(_) if whole => power(place),
            Self::Linear(_) => number(place),
            _ => String::new(),
        }
    }
}

/// 1, 10, ... in digits as long as they are few.
fn power(exponent: f64) -> String {
    if (-3.0..=6.0).contains(&exponent) {
        format!("{}", 10f64.powf(exponent))
    } else {
        format!("10^{exponent}")
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Shape {
    /// Points joined by a line.
    Line,
    /// The same, grey and dashed: what was published.
    Published,
    /// Bars from zero; several series share the width.
    Bars,
}

/// Points of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Its name.
    pub label: String,
    /// How it is drawn.
    pub shape: Shape,
    /// Its points in the axes' own units.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A line of ours.
    pub fn line(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), shape: Shape::Line, points }
    }

    /// What was published.
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
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// The horizontal scale.
    pub x: Axis,
    /// The vertical scale.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

type Failed = DrawingAreaErrorKind<std::io::Error>;
type Plain = Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Plain>;

impl Figure {
    /// The plot as SVG text.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        // Drawing into a string cannot fail; were it to, the file would show the plot as far as it got.
        let _ = self.draw(&mut svg);
        svg
    }

    fn draw(&self, svg: &mut String) -> Result<(), Failed> {
        let root = SVGBackend::with_string(svg, (WIDE, HIGH)).into_drawing_area();
        root.fill(&WHITE)?;
        let (plot, legend) = root.split_horizontally(WIDE - LEGEND_WIDE);
        let all = || self.series.iter().flat_map(|series| &series.points);
        let x = self.x.range(all().filter_map(|(x, _)| self.x.place(*x)));
        let y = self.y.range(all().filter_map(|(_, y)| self.y.place(*y)));
        let named = matches!(self.x, Axis::Names(..));
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, (FONT, 17).into_font().color(&TEXT))
            .margin(10)
            .x_label_area_size(if named { 64 } else { 46 })
            .y_label_area_size(66)
            .build_cartesian_2d(x.clone(), y.clone())?;
        let text = (FONT, 12).into_font().color(&TEXT);
        // One label for each power, or for every second or third where they would run into each other.
        let powers = |range: &Range<f64>, most: f64| {
            let span = range.end - range.start;
            (span / (span / most).ceil().max(1.0)) as usize + 1
        };
        let (x_labels, y_labels) = (powers(&x, 10.0), powers(&y, 8.0));
        chart
            .configure_mesh()
            .bold_line_style(GRID.stroke_width(1))
            .light_line_style(TRANSPARENT)
            .axis_style(TEXT.mix(0.5))
            .label_style(text.clone())
            .axis_desc_style(text)
            .x_labels(if named { 0 } else { x_labels })
            .y_labels(if matches!(self.y, Axis::Log(_)) { y_labels } else { 7 })
            .x_label_formatter(&|place| self.x.tick(*place))
            .y_label_formatter(&|place| self.y.tick(*place))
            .x_desc(self.x.label())
            .y_desc(self.y.label())
            .draw()?;
        let bars = self.series.iter().filter(|series| series.shape == Shape::Bars).count();
        let (mut ours, mut bar) = (0, 0);
        for (row, series) in self.series.iter().enumerate() {
            let colour = if series.shape == Shape::Published {
                PUBLISHED
            } else {
                ours += 1;
                SERIES[(ours - 1) % SERIES.len()]
            };
            let place = |(x, y): &(f64, f64)| Some((self.x.place(*x)?, self.y.place(*y)?));
            let points: Vec<(f64, f64)> = series.points.iter().filter_map(place).collect();
            match series.shape {
                Shape::Line => draw_line(&mut chart, &points, colour)?,
                Shape::Published => draw_published(&mut chart, &points)?,
                Shape::Bars => {
                    let foot = if matches!(self.y, Axis::Log(_)) { y.start } else { 0.0 };
                    draw_bars(&mut chart, &points, colour, (bar, bars), foot)?;
                    bar += 1;
                }
            }
            draw_key(&legend, row, series, colour)?;
        }
        if let Axis::Names(_, names) = &self.x {
            let style = (FONT, 11).into_font().transform(FontTransform::None).color(&TEXT);
            let style = style.pos(Pos::new(HPos::Center, VPos::Top));
            for (at, name) in names.iter().enumerate() {
                let (x, below) = chart.backend_coord(&(at as f64 + 0.5, y.start));
                // Neighbours stand on alternate lines, so that long names do not touch.
                let line = 6 + 15 * (at as i32 % 2);
                root.draw(&Text::new(name.as_str(), (x, below + line), style.clone()))?;
            }
        }
        drop(chart);
        root.present()
    }
}

fn draw_line(chart: &mut Chart<'_, '_>, points: &[(f64, f64)], colour: RGBColor) -> Result<(), Failed> {
    chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
    chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
    Ok(())
}

fn draw_published(chart: &mut Chart<'_, '_>, points: &[(f64, f64)]) -> Result<(), Failed> {
    let style = PUBLISHED.stroke_width(2);
    chart.draw_series(DashedLineSeries::new(points.iter().copied(), 5, 4, style))?;
    chart.draw_series(points.iter().map(|point| TriangleMarker::new(*point, 5, PUBLISHED.filled())))?;
    Ok(())
}

/// The `which` of `(which, count)` bars that share each place.
fn draw_bars(
    chart: &mut Chart<'_, '_>,
    points: &[(f64, f64)],
    colour: RGBColor,
    (which, count): (usize, usize),
    foot: f64,
) -> Result<(), Failed> {
    let wide = 0.8 / count.max(1) as f64;
    chart.draw_series(points.iter().map(|(x, y)| {
        let left = x - 0.4 + wide * which as f64;
        Rectangle::new([(left, foot), (left + wide * 0.92, *y)], colour.filled())
    }))?;
    Ok(())
}

fn draw_key(
    legend: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    row: usize,
    series: &Series,
    colour: RGBColor,
) -> Result<(), Failed> {
    let y = 50 + 22 * row as i32;
    match series.shape {
        Shape::Bars => legend.draw(&Rectangle::new([(4, y - 5), (24, y + 5)], colour.filled()))?,
        Shape::Line => {
            legend.draw(&PathElement::new([(4, y), (24, y)], colour.stroke_width(2)))?;
            legend.draw(&Circle::new((14, y), 3, colour.filled()))?;
        }
        Shape::Published => {
            for left in [4, 18] {
                legend.draw(&PathElement::new([(left, y), (left + 6, y)], colour.stroke_width(2)))?;
            }
            legend.draw(&TriangleMarker::new((14, y), 5, colour.filled()))?;
        }
    }
    let style = (FONT, 12).into_font().color(&TEXT).pos(Pos::new(HPos::Left, VPos::Center));
    legend.draw(&Text::new(series.label.as_str(), (30, y), style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_shows_its_labels_and_skips_what_has_no_place() {
        let sizes = |y: f64| vec![(4096.0, y), (1048576.0, 10.0 * y), (1073741824.0, 0.0)];
        let figure = Figure {
            name: "f",
            title: "Costs".into(),
            x: Axis::Bytes("block size".into()),
            y: Axis::Log("cycles per page".into()),
            series: vec![Series::line("ours", sizes(30.0)), Series::published("theirs", sizes(3000.0))],
        };
        let svg = figure.svg();
        for part in
            ["<svg", "Costs", "block size", "cycles per page", "ours", "theirs", "1000", "4 KiB", "</svg>"]
        {
            assert!(svg.contains(part), "{part:?} is missing");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn bars_have_names() {
        let figure = Figure {
            name: "b",
            title: "Rows".into(),
            x: Axis::Names("test".into(), vec!["1a".into(), "1b".into()]),
            y: Axis::Linear("share".into()),
            series: vec![
                Series::bars("ours", vec![(0.0, 0.5), (1.0, -0.25)]),
                Series::bars("theirs", vec![(0.0, 0.1)]),
            ],
        };
        let svg = figure.svg();
        assert!(svg.contains("1a") && svg.contains("1b") && svg.contains("share"));
    }

    #[test]
    fn an_empty_figure_is_drawn() {
        let (x, y) = (Axis::Bytes("x".into()), Axis::Linear("y".into()));
        let figure = Figure { name: "e", title: "Nothing".into(), x, y, series: Vec::new() };
        assert!(figure.svg().ends_with("</svg>\n"));
    }
}
