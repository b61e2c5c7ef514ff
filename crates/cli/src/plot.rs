//! The plots of the page, as inline SVG.
//!
//! Drawn by plotters, then made part of the page: it knows colours only as numbers, so each role gets a number of its own
//! ([`Role`]), which is replaced by the page's CSS variable of that role. Thus one drawing serves light and dark, and the
//! page decides both.
//!
//! Titles and legends are HTML, outside the drawing, where they wrap and can be selected; in the drawing are axes (with
//! their units), grid and data. Data are scaled to the axis's unit beforehand, because round numbers of bytes are not round
//! numbers of MiB.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;
use vellum_measure::plot::number;

/// Size of all text in a drawing.
const FONT_SIZE: u32 = 12;
/// Where a logarithmic scale of counts begins: a count of one is a bar of this height.
const LOG_FLOOR: f64 = -0.3;

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Axes and their numbers.
    Text,
    /// Lines behind the data.
    Grid,
    /// The first kind of data.
    First,
    /// The second kind of data.
    Second,
    /// The third kind of data.
    Third,
}

impl Role {
    const ALL: [Role; 5] = [Role::Text, Role::Grid, Role::First, Role::Second, Role::Third];

    /// The CSS variable.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Role::Text => "--axis",
            Role::Grid => "--grid",
            Role::First => "--first",
            Role::Second => "--second",
            Role::Third => "--third",
        }
    }

    /// A number that stands for the role and for nothing else in the drawing.
    fn colour(self) -> RGBColor {
        RGBColor(1, 2, 10 + self as u8)
    }

    fn written(self) -> String {
        let RGBColor(r, g, b) = self.colour();
        format!("\"#{r:02X}{g:02X}{b:02X}\"")
    }
}

/// Width and height of a drawing, in its own units (pixels at full size).
pub(crate) type Size = (u32, u32);

/// A quantity's unit on an axis: its name, and how much of the base unit it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) base: f64,
}

impl Unit {
    /// For byte axes that reach up to `max`.
    pub(crate) fn of_bytes(max: f64) -> Unit {
        Unit::pick(
            max,
            &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1024.0 * 1024.0), ("GiB", 1024.0 * 1024.0 * 1024.0)],
        )
    }

    /// For time axes, in nanoseconds, that reach up to `max`.
    pub(crate) fn of_time(max: f64) -> Unit {
        Unit::pick(max, &[("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)])
    }

    /// For counts that reach up to `max`.
    pub(crate) fn of_count(max: f64) -> Unit {
        Unit::pick(max, &[("", 1.0), ("thousand", 1e3), ("million", 1e6), ("billion", 1e9)])
    }

    /// The largest unit of which `max` is at least two.
    fn pick(max: f64, units: &[(&'static str, f64)]) -> Unit {
        let fit = units.iter().rev().find(|(_, base)| max >= 2.0 * base).or(units.first());
        let (name, base) = fit.copied().unwrap_or(("", 1.0));
        Unit { name, base }
    }
}

/// A line of values over time.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) role: Role,
    /// Whether the area below is tinted.
    pub(crate) filled: bool,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Bars over equal stretches of time, one behind the other from the zero line.
#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) role: Role,
    pub(crate) heights: Vec<f64>,
}

/// Text of both axes.
#[derive(Debug)]
pub(crate) struct Axes<'a> {
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
}

/// Lines over time; values in axis units.
pub(crate) fn lines(size: Size, axes: &Axes<'_>, x_max: f64, lines: &[Line]) -> String {
    let y_max = top(lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)));
    draw(Frame { size, axes, x: 0.0..x_max, y: 0.0..y_max, names: None }, |chart| {
        for line in lines {
            let points = line.points.iter().copied();
            if line.filled {
                chart.draw_series(AreaSeries::new(points.clone(), 0.0, line.role.colour().mix(0.16)))?;
            }
            chart.draw_series(LineSeries::new(points, line.role.colour().stroke_width(2)))?;
        }
        Ok(())
    })
}

/// Rates over time; each kind's bars stand on the zero line, the first behind.
pub(crate) fn rates(size: Size, axes: &Axes<'_>, x_max: f64, bars: &[Bars]) -> String {
    let y_max = top(bars.iter().flat_map(|bars| bars.heights.iter().copied()));
    draw(Frame { size, axes, x: 0.0..x_max, y: 0.0..y_max, names: None }, |chart| {
        for kind in bars {
            let width = x_max / kind.heights.len().max(1) as f64;
            chart.draw_series(kind.heights.iter().enumerate().filter(|(_, height)| **height > 0.0).map(
                |(index, height)| {
                    let left = index as f64 * width;
                    Rectangle::new(
                        [(left, 0.0), (left + width, *height)],
                        kind.role.colour().mix(0.75).filled(),
                    )
                },
            ))?;
        }
        Ok(())
    })
}

/// Bars with names below, their heights on a logarithmic scale that begins below 1 so that one block shows.
pub(crate) fn histogram(size: Size, axes: &Axes<'_>, names: &[String], counts: &[u64]) -> String {
    let height = |count: u64| if count == 0 { LOG_FLOOR } else { (count as f64).log10() };
    let y_max = top(counts.iter().map(|count| height(*count))).max(1.0);
    let frame = Frame { size, axes, x: 0.0..names.len() as f64, y: LOG_FLOOR..y_max, names: Some(names) };
    draw(frame, |chart| {
        chart.draw_series(counts.iter().enumerate().filter(|(_, count)| **count > 0).map(
            |(index, count)| {
                let left = index as f64 + 0.12;
                let corners = [(left, LOG_FLOOR), (left + 0.76, height(*count))];
                Rectangle::new(corners, Role::First.colour().mix(0.85).filled())
            },
        ))?;
        Ok(())
    })
}

/// A little above the highest value; one where all are zero.
fn top(values: impl Iterator<Item = f64>) -> f64 {
    let max = values.fold(0.0, f64::max);
    if max > 0.0 { max * 1.06 } else { 1.0 }
}

type Plain = Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Plain>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Everything of a drawing but its data.
struct Frame<'a> {
    size: Size,
    axes: &'a Axes<'a>,
    x: Range<f64>,
    y: Range<f64>,
    /// Names of the bars; with them, the vertical scale is a logarithm.
    names: Option<&'a [String]>,
}

fn draw(frame: Frame<'_>, data: impl FnOnce(&mut Chart<'_, '_>) -> Drawn) -> String {
    let mut svg = String::new();
    // Drawing into a string cannot fail; were it to, the page would show the plot as far as it got.
    let _ = try_draw(&mut svg, frame, data);
    embed(&svg)
}

fn try_draw(svg: &mut String, frame: Frame<'_>, data: impl FnOnce(&mut Chart<'_, '_>) -> Drawn) -> Drawn {
    let root = SVGBackend::with_string(svg, frame.size).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(8)
        .margin_right(16)
        .margin_bottom(4)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(frame.x, frame.y.clone())?;
    let text = ("sans-serif", FONT_SIZE).into_font().color(&Role::Text.colour());
    let plain = |value: &f64| number(*value);
    let power = |value: &f64| if value.fract() == 0.0 { power_of_ten(*value) } else { String::new() };
    let named = frame.names.is_some();
    let y_label: &dyn Fn(&f64) -> String = if named { &power } else { &plain };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(Role::Grid.colour().stroke_width(1))
        .light_line_style(TRANSPARENT)
        .axis_style(Role::Grid.colour().stroke_width(1))
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .x_labels(if named { 0 } else { frame.size.0 as usize / 90 })
        .y_labels(if named { frame.y.end.ceil() as usize + 1 } else { 6 })
        .x_label_formatter(&plain)
        .y_label_formatter(y_label)
        .x_desc(frame.axes.x)
        .y_desc(frame.axes.y)
        .draw()?;
    data(&mut chart)?;
    let centred = text.pos(Pos::new(HPos::Center, VPos::Top));
    for (index, name) in frame.names.unwrap_or_default().iter().enumerate() {
        let (x, y) = chart.backend_coord(&(index as f64 + 0.5, frame.y.start));
        root.draw(&Text::new(name.as_str(), (x, y + 8), centred.clone()))?;
    }
    drop(chart);
    root.present()
}

/// 1, 10, 100, 1K, ... for 0, 1, 2, 3, ...
fn power_of_ten(exponent: f64) -> String {
    let digits = ["1", "10", "100"][exponent as usize % 3];
    let scale = ["", "K", "M", "G", "T", "P", "E"].get(exponent as usize / 3).copied().unwrap_or("?");
    format!("{digits}{scale}")
}

/// Makes a drawing part of the page: roles become variables, the size gives way to the page's.
fn embed(svg: &str) -> String {
    let mut svg = svg.to_owned();
    for role in Role::ALL {
        svg = svg.replace(&role.written(), &format!("\"var({})\"", role.variable()));
    }
    let body = svg.find("<svg").map_or("", |start| &svg[start..]);
    let (head, rest) = body.split_once('>').unwrap_or((body, ""));
    let view = head.find("viewBox=\"").map_or("", |start| &head[start..]);
    let view = view.match_indices('"').nth(1).map_or("", |(end, _)| &view[..=end]);
    format!("<svg {view} role=\"img\">{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_leave_at_least_two_on_the_axis() {
        assert_eq!(Unit::of_bytes(3.0 * 1024.0 * 1024.0).name, "MiB");
        assert_eq!(Unit::of_bytes(1.5 * 1024.0 * 1024.0).name, "KiB");
        assert_eq!(Unit::of_bytes(0.0).name, "B");
        assert_eq!(Unit::of_time(2.5e9).name, "s");
        assert_eq!(Unit::of_time(90e9).name, "s");
        assert_eq!(Unit::of_count(12_345.0).name, "thousand");
    }

    #[test]
    fn powers_are_written_short() {
        let texts: Vec<String> = (0..8).map(|n| power_of_ten(f64::from(n))).collect();
        assert_eq!(texts, ["1", "10", "100", "1K", "10K", "100K", "1M", "10M"]);
    }

    #[test]
    fn drawings_carry_no_fixed_colour_and_no_address() {
        let axes = Axes { x: "time (s)", y: "resident (MiB)" };
        let line = Line { role: Role::First, filled: true, points: vec![(0.0, 1.0), (1.0, 3.0)] };
        let bars = Bars { role: Role::Second, heights: vec![1.0, 0.0, 2.0] };
        let drawings = [
            lines((600, 260), &axes, 1.0, &[line]),
            rates((600, 260), &axes, 1.0, &[bars]),
            histogram((600, 260), &axes, &["1 B".into(), "2 B".into()], &[3, 4]),
        ];
        for svg in drawings {
            assert!(svg.starts_with("<svg viewBox=\"0 0 600 260\""), "{svg}");
            assert!(
                svg.contains("var(--axis)") && svg.contains("resident (MiB)") && svg.ends_with("</svg>\n"),
                "{svg}"
            );
            assert!(!svg.contains("http"), "{svg}");
            let fixed = svg.match_indices("\"#").count();
            assert_eq!(fixed, 0, "{svg}");
        }
    }
}
