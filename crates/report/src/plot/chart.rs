//! Charts of computed figures, such as a working-set curve or the medians of a table: lines and bars over a
//! scale.
//!
//! Scales are linear, logarithmic, or names. Lines join their points in order. A stem is a thin line from
//! the horizontal axis up to one point of a curve, to emphasise that point.
//!
//! Invariant: points that a scale cannot show are left out, and the picture shows their number. Such points
//! are not numbers, or are not above zero on a logarithmic scale.

use super::axis::Axis;
use super::canvas::EIGHTHS;
use super::palette::Ink;
use super::picture::{Box, Key, Mark, Panel, Picture, Swatch};
use super::subject::clean;
use super::{Plot, PlotError, SERIES_MAX, terminal, vector};
use crate::units;
use serde::Serialize;
use std::time::Duration;
use vellum_measure::Unit;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// Linear, from zero.
    Even,
    /// Logarithmic: ticks at powers of two for bytes, else of ten.
    Ratios,
}

/// The quantity of an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity {
    name: String,
    unit: Unit,
    scaling: Scaling,
    /// Names side by side, instead of numbers.
    names: Vec<String>,
}

impl Quantity {
    /// A quantity in a unit.
    #[must_use]
    pub fn new(name: impl Into<String>, unit: Unit, scaling: Scaling) -> Self {
        Self { name: name.into(), unit, scaling, names: Vec::new() }
    }

    /// Names side by side; values are their places, from 0.
    #[must_use]
    pub fn names(name: impl Into<String>, names: Vec<String>) -> Self {
        Self { name: name.into(), unit: Unit::Count, scaling: Scaling::Even, names }
    }

    fn axis(&self, values: impl Iterator<Item = f64>) -> Axis {
        let name = clean(&self.name);
        if !self.names.is_empty() {
            return Axis::named(&name, self.names.iter().map(|name| clean(name)).collect());
        }
        match self.scaling {
            Scaling::Even => Axis::around(&name, &self.unit, values, true),
            Scaling::Ratios => Axis::ratios(&name, &self.unit, values),
        }
    }

    fn has_place(&self, value: f64) -> bool {
        value.is_finite() && (self.scaling == Scaling::Even || value > 0.0)
    }
}

/// The way in which points are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Shape {
    /// Joined by a line.
    Line,
    /// Joined by a grey line with triangles, for published figures.
    Published,
    /// Bars. Over names, several series share the width of a name. Over numbers a bar begins at its own
    /// number, and higher bars stand behind lower ones.
    Bars,
}

/// Points of one kind, drawn in one way.
#[derive(Debug, Clone)]
struct Line {
    name: String,
    shape: Shape,
    points: Vec<(f64, f64)>,
}

/// The most points whose line has a mark at each.
const MARKED_MAX: usize = 24;
/// The part of a name's width that bars fill, and the part of a bar's share that the bar fills.
const ROOM: f64 = 0.8;
const SHARE: f64 = 0.92;

/// The steps of a curve, and the least number of points for one.
const CURVE_STEPS: usize = 30;
const CURVE_POINTS: usize = 8;

/// Lines and bars over a scale.
#[derive(Debug, Clone)]
pub struct Chart {
    title: String,
    x: Quantity,
    y: Quantity,
    lines: Vec<Line>,
    stems: Vec<(String, (f64, f64))>,
    /// The number of points without a place.
    left_out: usize,
}

impl Chart {
    /// A chart without lines.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Quantity, y: Quantity) -> Self {
        Self { title: title.into(), x, y, lines: Vec::new(), stems: Vec::new(), left_out: 0 }
    }

    /// A chart over time, in nanoseconds.
    #[must_use]
    pub fn over_time(title: impl Into<String>, quantity: &str, unit: Unit) -> Self {
        let x = Quantity::new("time", Unit::Nanoseconds, Scaling::Even);
        Self::new(title, x, Quantity::new(quantity, unit, Scaling::Even))
    }

    /// Adds a line through these points, in the units of the quantities.
    ///
    /// # Errors
    /// [`PlotError::TooMany`] beyond [`SERIES_MAX`] lines.
    pub fn line(self, name: impl Into<String>, points: &[(f64, f64)]) -> Result<Self, PlotError> {
        if self.lines.len() == SERIES_MAX {
            return Err(PlotError::TooMany(SERIES_MAX + 1));
        }
        Ok(self.with(Shape::Line, name, points))
    }

    /// Adds points, in the units of the quantities. Beyond [`SERIES_MAX`] series, colours repeat.
    #[must_use]
    pub fn with(mut self, shape: Shape, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let placed = points.iter().copied().filter(|point| self.has_place(*point));
        let placed: Vec<(f64, f64)> = placed.collect();
        self.left_out += points.len() - placed.len();
        self.lines.push(Line { name: name.into(), shape, points: placed });
        self
    }

    /// The first line, over time, as a line of blocks, if it has enough points.
    pub(crate) fn curve(&self) -> Option<String> {
        let points = &self.lines.first()?.points;
        let (end, most) = (points.last()?.0, points.iter().map(|point| point.1).fold(0.0, f64::max));
        let mut steps = [0.0; CURVE_STEPS];
        for (at, height) in points {
            let step = &mut steps[((at * (CURVE_STEPS - 1) as f64) / end.max(1.0)) as usize];
            *step = height.max(*step);
        }
        let mut last = 0.0;
        let blocks = steps.iter().map(|&step| {
            // A step without points repeats the last value.
            last = if step > 0.0 { step } else { last };
            EIGHTHS[(last * 7.0 / most.max(1.0)).ceil() as usize]
        });
        let (blocks, time) = (blocks.collect::<String>(), units::time(Duration::from_nanos(end as u64)));
        (points.len() >= CURVE_POINTS)
            .then(|| format!("{blocks} up to {} in {}", self.y.unit.scaled(most), time))
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

    /// The picture as an SVG document, 900 units wide.
    #[must_use]
    pub fn svg(&self) -> String {
        vector::svg(&self.picture())
    }

    /// The picture as a part of an HTML page, whose CSS variables (`--axis`, `--grid`, `--first`, `--second`,
    /// `--third`) set the colours.
    #[must_use]
    pub fn inline(&self) -> String {
        vector::inline(&self.picture())
    }

    /// The picture as `height` lines of at most `width` columns, as in [`Plot::terminal`].
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
            let lines = self.lines.iter().flat_map(|line| &line.points);
            lines.chain(self.stems.iter().map(|(_, point)| point))
        };
        let x = self.x.axis(all().map(|point| point.0));
        let bars = self.lines.iter().filter(|line| line.shape == Shape::Bars);
        // On a logarithmic scale the axis starts below the least bar, so that this bar also has a height.
        let feet = bars.clone().flat_map(|line| line.points.iter().map(|point| point.1 / 2.0));
        let y = self.y.axis(all().map(|point| point.1).chain(feet));
        let several = self.lines.len() > 1;
        let (mut marks, mut key) = (Vec::new(), Vec::new());
        for (name, (at, top)) in &self.stems {
            let points = vec![(*at, y.range.start), (*at, *top)];
            marks.push(Mark::Path { ink: Ink::Level, points, sign: None });
            key.push(Key { swatch: Swatch::Line(Ink::Level, None), label: clean(name), details: Vec::new() });
        }
        let (mut ours, count, mut bars) = (0, bars.count(), Vec::new());
        for (place, Line { name, shape, points }) in self.lines.iter().enumerate() {
            let sign = if several { char::from_digit(place as u32 + 1, 10) } else { None };
            let mut ink = Ink::Published;
            if *shape != Shape::Published {
                ink = Ink::Series(ours);
                ours += 1;
            }
            let swatch = if *shape == Shape::Bars {
                bars.push((ink, self.boxes(points, (bars.len(), count), &y)));
                Swatch::Area(ink)
            } else {
                if points.len() <= MARKED_MAX {
                    marks.push(Mark::Dots(ink, points.clone()));
                }
                marks.push(Mark::Path { ink, points: points.clone(), sign });
                Swatch::Line(ink, sign)
            };
            key.insert(place, Key { swatch, label: clean(name), details: Vec::new() });
        }
        marks.splice(0..0, in_layers(&bars));
        let left_out = format!("{} without a place on the scales are left out.", points(self.left_out));
        let notes = if self.left_out > 0 { vec![left_out] } else { Vec::new() };
        let panels = vec![Panel { name: String::new(), remark: String::new(), y, marks }];
        Picture { title: clean(&self.title), x, panels, key, notes }
    }

    /// The boxes of series number `which` of `count` series of bars.
    fn boxes(&self, points: &[(f64, f64)], (which, count): (usize, usize), y_axis: &Axis) -> Vec<Box> {
        let step = points.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min);
        let wide = ROOM / count as f64;
        let ends = |x: f64| match self.x.names.is_empty() {
            true => (x, if step.is_finite() { x + step } else { x }),
            false => {
                let left = x + 0.5 - ROOM / 2.0 + wide * which as f64;
                (left, left + wide * SHARE)
            }
        };
        let foot = if self.y.scaling == Scaling::Ratios { y_axis.range.start } else { 0.0 };
        let seen = points.iter().filter(|(_, y)| *y != foot);
        seen.map(|(x, y)| {
            let (left, right) = ends(*x);
            Box { left, right, low: y.min(foot), high: y.max(foot) }
        })
        .collect()
    }
}

/// Series of bars as marks, with the higher of bars at one place drawn first.
fn in_layers(bars: &[(Ink, Vec<Box>)]) -> Vec<Mark> {
    let above = |one: &Box, of: usize| {
        let covers = |(other, (_, boxes)): &(usize, &(Ink, Vec<Box>))| {
            let same = |two: &&Box| two.left == one.left;
            boxes.iter().find(same).is_some_and(|two| (two.high, of) > (one.high, *other))
        };
        bars.iter().enumerate().filter(|other| other.0 != of).filter(covers).count()
    };
    let layer = |layer: usize| {
        bars.iter().enumerate().map(move |(of, (ink, boxes))| {
            let boxes = boxes.iter().copied().filter(|one| above(one, of) == layer);
            Mark::Crowds(*ink, boxes.collect())
        })
    };
    let is_empty = |mark: &Mark| matches!(mark, Mark::Crowds(_, boxes) if boxes.is_empty());
    (0..bars.len()).flat_map(layer).filter(|mark| !is_empty(mark)).collect()
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
            let text = chart().terminal(width, height, false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(text.lines().count() <= height, "{text}");
            for word in ["z(T)", "window", "memory (KiB)", "knee", "ms"] {
                assert!(text.contains(word), "{word} is missing:\n{text}");
            }
        }
    }

    #[test]
    fn bars_stand_on_names_and_over_numbers() {
        let names = Quantity::names("test", vec!["1a".into(), "1b".into()]);
        let share = Quantity::new("share", Unit::Other(String::new()), Scaling::Even);
        let chart = Chart::new("Rows", names, share.clone())
            .with(Shape::Bars, "ours", &[(0.0, 0.5), (1.0, -0.25)])
            .with(Shape::Bars, "theirs", &[(0.0, 0.1)]);
        let picture = chart.picture();
        let Mark::Crowds(_, ours) = &picture.panels[0].marks[0] else { panic!("{picture:?}") };
        let Mark::Crowds(_, theirs) = &picture.panels[0].marks[1] else { panic!("{picture:?}") };
        assert!((ours[0].low, ours[0].high) == (0.0, 0.5) && (ours[1].low, ours[1].high) == (-0.25, 0.0));
        assert!(ours[0].right < theirs[0].left && theirs[0].right < 1.0 && ours[1].left > 1.0);
        assert!(chart.svg().contains("1b"));
        let time = Quantity::new("time", Unit::Seconds, Scaling::Even);
        let chart = Chart::new("Rates", time, share).with(Shape::Bars, "a", &[(0.0, 1.0), (2.0, 3.0)]);
        let Mark::Crowds(_, bars) = &chart.picture().panels[0].marks[0] else { panic!("bars") };
        assert_eq!((bars[0].left, bars[0].right, bars[1].left), (0.0, 2.0, 2.0));
        let chart = chart.with(Shape::Bars, "b", &[(0.0, 2.0), (2.0, 1.0)]);
        let picture = chart.picture();
        let drawn = picture.panels[0].marks.iter().flat_map(|mark| match mark {
            Mark::Crowds(_, boxes) => boxes.iter().map(|one| (one.left, one.high)).collect(),
            _ => Vec::new(),
        });
        let drawn: Vec<(f64, f64)> = drawn.collect();
        assert_eq!(drawn, [(2.0, 3.0), (0.0, 2.0), (0.0, 1.0), (2.0, 1.0)], "the higher one first");
    }

    #[test]
    fn a_page_decides_the_colours() {
        let svg = chart().with(Shape::Published, "theirs", &[(1e4, 5.0)]).inline();
        assert!(svg.starts_with("<svg viewBox=\"0 0 900 ") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(
            svg.contains("var(--axis)") && svg.contains("var(--first)") && !svg.contains("http"),
            "{svg}"
        );
        assert!(!svg.contains("#FFFFFF"), "the ground is the page's: {svg}");
    }

    #[test]
    fn points_without_a_place_are_counted() {
        let chart = chart().line("more", &[(0.0, 1.0), (1e4, f64::NAN), (1e4, 5.0)]).unwrap();
        assert!(
            chart.stem("nowhere", (-1.0, 1.0)).terminal(80, 24, false).contains("3 points without a place")
        );
    }

    #[test]
    fn lines_have_a_limit() {
        let full = (1..SERIES_MAX).try_fold(chart(), |chart, _| chart.line("one", &[(1.0, 1.0)])).unwrap();
        assert!(matches!(full.line("more", &[]), Err(PlotError::TooMany(_))));
    }
}
