//! Plots the empirical distribution function: the share of the values at or below each value.
//!
//! There are no bins. All series share one pair of axes: of two curves, the one further left is the faster
//! series. The curve of n values rises by 1/n at each value. Steps too small to see are joined, so that the
//! file does not grow with n. The error of the curve is less than one cell of a grid that is finer than the
//! picture. Observations with a known cause are marked on the curve.

use super::Plot;
use super::axis::Axis;
use super::palette::{Ink, class};
use super::picture::{Detail, Key, Mark, Panel, Picture, Swatch};
use super::subject::{Value, cause_keys, clean, omissions, scaled};
use super::thin::{Point, cell, thin};
use std::ops::Range;
use vellum_measure::{Cause, quantile};

/// Corners of the curve closer than a cell of this grid are joined.
const GRID: (usize, usize) = (800, 500);

pub(super) fn picture(plot: &Plot, detail: Detail) -> Picture {
    let shown = plot.shown();
    let values = shown.iter().flat_map(|one| one.plain());
    let x = Axis::around(&clean(&plot.quantity), &plot.unit, values, plot.zero);
    let y = Axis::shares("observations at or below");
    let several = shown.len() > 1;
    let (mut marks, mut key) = (Vec::new(), Vec::new());
    for (place, one) in shown.iter().enumerate() {
        let sorted = one.sorted();
        let sign = if several { char::from_digit(place as u32 + 1, 10) } else { None };
        let ink = Ink::Series(place);
        marks.push(Mark::Path { ink, points: curve(&sorted, &x.range), sign });
        let plain: Vec<f64> = sorted.iter().map(|value| value.value).collect();
        let mut details = Vec::new();
        for (share, says) in [(0.5, "median"), (0.9, "90 % ≤"), (0.99, "99 % ≤")] {
            details
                .extend(quantile(&plain, share).map(|value| format!("{says} {}", scaled(&plot.unit, value))));
        }
        details.push(one.remark("observations"));
        key.push(Key { swatch: Swatch::Line(ink, sign), label: clean(one.name), details });
        marks.extend(causes(&sorted, (&x.range, &y.range), detail));
    }
    // Curves are drawn on top: the marks of many causes then have the curve as a frame.
    marks.sort_by_key(|mark| matches!(mark, Mark::Path { .. }));
    key.extend(cause_keys(&shown, Swatch::Dot));
    let notes = omissions(&shown, plot.layers, &plot.unit);
    let title = plot.title_or(|| format!("{}: cumulative distribution", plot.names()));
    let panels = vec![Panel { name: String::new(), remark: String::new(), y, marks }];
    Picture { title, x, panels, key, notes }
}

/// The corners of the curve, from the left end of the axis to its right end.
fn curve(sorted: &[Value], x: &Range<f64>) -> Vec<(f64, f64)> {
    let mut points = vec![(x.start, 0.0)];
    if sorted.is_empty() {
        return points;
    }
    let (mut level, mut last) = (0.0, None);
    let mut done = 0;
    for same in sorted.chunk_by(|a, b| a.value == b.value) {
        done += same.len();
        let (value, share) = (same[0].value, done as f64 / sorted.len() as f64);
        let at = (cell(value, x, GRID.0), cell(share, &(0.0..1.0), GRID.1));
        if last == Some(at) && done < sorted.len() {
            continue;
        }
        points.extend([(value, level), (value, share)]);
        (level, last) = (share, Some(at));
    }
    points.push((x.end, level));
    points
}

/// Observations with a cause, on the curve.
fn causes(sorted: &[Value], axes: (&Range<f64>, &Range<f64>), detail: Detail) -> Vec<Mark> {
    let mut marks = Vec::new();
    for cause in Cause::ALL {
        let (cause, share) = (Some(cause), |rank: usize| (rank + 1) as f64 / sorted.len() as f64);
        let points = sorted.iter().enumerate().filter(|(_, value)| value.cause == cause);
        let points =
            points.map(|(rank, value)| Point { x: value.value, y: share(rank), class: class(cause) });
        let shapes_max = detail.shapes_max.map(|max| max / Cause::ALL.len());
        let thinned = thin(points.collect(), axes, (detail.columns, detail.rows), shapes_max);
        marks.extend(thinned.marks(class(cause)));
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Rng;

    fn values(values: &[f64]) -> Vec<Value> {
        values.iter().map(|value| Value { number: 0, value: *value, cause: None }).collect()
    }

    #[test]
    fn the_curve_climbs_at_each_value_by_its_share() {
        let corners = curve(&values(&[1.0, 2.0, 2.0, 4.0]), &(0.0..5.0));
        let expected = [
            (0.0, 0.0),
            (1.0, 0.0),
            (1.0, 0.25),
            (2.0, 0.25),
            (2.0, 0.75),
            (4.0, 0.75),
            (4.0, 1.0),
            (5.0, 1.0),
        ];
        assert_eq!(corners, expected);
        assert_eq!(curve(&[], &(0.0..1.0)), [(0.0, 0.0)]);
    }

    #[test]
    fn the_curve_of_many_is_short_and_true() {
        let mut rng = Rng::new(8);
        let mut drawn: Vec<f64> = (0..50_000).map(|_| rng.unit() * rng.unit()).collect();
        drawn.sort_by(f64::total_cmp);
        let corners = curve(&values(&drawn), &(0.0..1.0));
        assert!(corners.len() < 2 * (GRID.0 + GRID.1), "{}", corners.len());
        for (value, share) in &corners[1..corners.len() - 1] {
            let below = drawn.partition_point(|one| one <= value) as f64 / drawn.len() as f64;
            let at = drawn.partition_point(|one| one < value) as f64 / drawn.len() as f64;
            let slack = 2.0 / GRID.1 as f64;
            assert!(at - slack <= *share && *share <= below + slack, "{at}..{below}, {share}, seed 8");
        }
        assert_eq!(corners.last(), Some(&(1.0, 1.0)));
    }
}
