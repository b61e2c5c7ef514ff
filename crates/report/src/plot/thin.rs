//! Reduces many observations to few shapes, with no observation hidden.
//!
//! A hundred thousand dots make a picture of megabytes in which most dots lie on others. The area is
//! therefore cut into columns about two pixels wide, and these into cells about as high. Within a column,
//! observations in neighbouring cells form a *run*, drawn as one box from the lowest to the highest. An
//! observation with free cells above and below stays a dot at its exact place. Every observation is thus
//! covered, boxes end at true values, and gaps between modes stay open. A second box shows the middle half
//! of a column's observations; a long run behind that box (a *crowd*) becomes a tint.
//!
//! ```text
//!    •            a single observation: a dot
//!    ░            lowest to highest of a crowd: a tint
//!    █            its middle half
//!    ░
//!    ▌            a few neighbours: a run
//! ```
//!
//! If too many shapes remain (wide noise, thinly spread), the cells' size is doubled until few enough remain.

use super::palette::Ink;
use super::picture::{Box, Mark};
use std::ops::Range;

/// An observation and its class. Observations of different classes are not joined to a run. Class 0 is the
/// ordinary one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) class: usize,
}

/// The shapes for all points, by class.
#[derive(Debug, Default)]
pub(crate) struct Thinned {
    /// Observations drawn singly.
    pub(crate) dots: Vec<Point>,
    pub(crate) runs: Vec<(usize, Box)>,
    /// Runs of class 0 that overlap their column's middle half.
    pub(crate) crowds: Vec<Box>,
    /// Middle halves, cut to the crowds.
    pub(crate) middles: Vec<Box>,
}

impl Thinned {
    pub(crate) fn shapes(&self) -> usize {
        self.dots.len() + self.runs.len() + self.crowds.len() + self.middles.len()
    }

    /// The runs and the dots of a class.
    pub(crate) fn marks(&self, class: usize) -> impl Iterator<Item = Mark> {
        let ink = Ink::of_class(class);
        let runs: Vec<Box> = self.runs.iter().filter(|(of, _)| *of == class).map(|(_, run)| *run).collect();
        let dots = self.dots.iter().filter(|dot| dot.class == class).map(|dot| (dot.x, dot.y));
        let dots: Vec<(f64, f64)> = dots.collect();
        let runs = (!runs.is_empty()).then_some(Mark::Runs(ink, runs));
        runs.into_iter().chain((!dots.is_empty()).then_some(Mark::Dots(ink, dots)))
    }
}

/// The least number of observations in a column whose middle half is shown.
const CROWD_MIN: usize = 8;
/// Cells are not doubled below this number of columns.
const COLUMNS_MIN: usize = 24;

/// Thins `points` on a grid of at most `columns` by `rows` over `x` and `y` to at most `shapes_max` shapes,
/// if that is possible. Without a limit all points stay.
pub(crate) fn thin(
    points: Vec<Point>,
    (x, y): (&Range<f64>, &Range<f64>),
    (mut columns, mut rows): (usize, usize),
    shapes_max: Option<usize>,
) -> Thinned {
    let Some(shapes_max) = shapes_max else { return Thinned { dots: points, ..Thinned::default() } };
    loop {
        let thinned = on_grid(&points, (x, y), (columns, rows));
        if thinned.shapes() <= shapes_max || columns / 2 < COLUMNS_MIN {
            return thinned;
        }
        (columns, rows) = (columns / 2, (rows / 2).max(1));
    }
}

/// The cell of a value, if `range` is divided into `count` cells.
pub(crate) fn cell(value: f64, range: &Range<f64>, count: usize) -> usize {
    let place = (value - range.start) / (range.end - range.start) * count as f64;
    (place.max(0.0) as usize).min(count.saturating_sub(1))
}

fn on_grid(points: &[Point], (x, y): (&Range<f64>, &Range<f64>), (columns, rows): (usize, usize)) -> Thinned {
    let mut order: Vec<(usize, Point)> = points.iter().map(|p| (cell(p.x, x, columns), *p)).collect();
    order.sort_unstable_by(|(a, p), (b, q)| a.cmp(b).then(p.class.cmp(&q.class)).then(p.y.total_cmp(&q.y)));
    let mut thinned = Thinned::default();
    let wide = (x.end - x.start) / columns as f64;
    for group in order.chunk_by(|(a, p), (b, q)| a == b && p.class == q.class) {
        let (column, Point { class, .. }) = group[0];
        let left = x.start + wide * column as f64;
        let boxed = |low, high| Box { left, right: left + wide, low, high };
        let middle = (class == 0 && group.len() >= CROWD_MIN)
            .then(|| (group[group.len() / 4].1.y, group[group.len() - 1 - group.len() / 4].1.y));
        let near =
            |(_, p): &(usize, Point), (_, q): &(usize, Point)| cell(q.y, y, rows) <= cell(p.y, y, rows) + 1;
        for run in group.chunk_by(near) {
            let (low, high) = (run[0].1.y, run[run.len() - 1].1.y);
            match (run, middle) {
                ([(_, single)], _) => thinned.dots.push(*single),
                (_, Some((first, third))) if low <= third && first <= high => {
                    thinned.crowds.push(boxed(low, high));
                    thinned.middles.push(boxed(low.max(first), high.min(third)));
                }
                _ => thinned.runs.push((class, boxed(low, high))),
            }
        }
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Rng;

    const SEED: u64 = 20_261_121;
    const GRID: (usize, usize) = (380, 180);

    fn series(n: usize, mut value: impl FnMut(&mut Rng) -> f64) -> Vec<Point> {
        let mut rng = Rng::new(SEED);
        (0..n).map(|at| Point { x: at as f64, y: value(&mut rng), class: 0 }).collect()
    }

    /// True if each point lies exactly in a shape of its class.
    fn all_covered(points: &[Point], thinned: &Thinned) -> bool {
        points.iter().all(|p| {
            let within =
                |b: &Box| b.low <= p.y && p.y <= b.high && b.left <= p.x + 1e-6 && p.x <= b.right + 1e-6;
            thinned.dots.iter().any(|d| d.x == p.x && d.y == p.y && d.class == p.class)
                || thinned.runs.iter().any(|(class, b)| *class == p.class && within(b))
                || thinned.crowds.iter().any(within)
        })
    }

    #[test]
    fn shapes_cover_all_observations_and_end_at_them() {
        let points = series(20_000, |rng| rng.unit() * rng.unit() * 100.0);
        let thinned = thin(points.clone(), (&(0.0..20_000.0), &(0.0..100.0)), GRID, Some(4000));
        assert!(all_covered(&points, &thinned), "seed {SEED}");
        assert!(thinned.shapes() <= 4000, "{} shapes, seed {SEED}", thinned.shapes());
        let ends = thinned.runs.iter().map(|(_, b)| b).chain(&thinned.crowds).chain(&thinned.middles);
        for end in ends.flat_map(|b| [b.low, b.high]).take(500) {
            assert!(points.iter().any(|p| p.y == end), "{end} is nobody's, seed {SEED}");
        }
    }

    #[test]
    fn gaps_between_modes_stay_open_and_classes_apart() {
        let mut points = series(50_000, |rng| if rng.unit() < 0.6 { 20.0 } else { 30.0 });
        points[100].class = 2;
        let thinned = thin(points.clone(), (&(0.0..50_000.0), &(0.0..100.0)), GRID, Some(4000));
        let boxes = thinned.crowds.iter().chain(&thinned.middles).chain(thinned.runs.iter().map(|(_, b)| b));
        assert!(boxes.clone().count() > 760, "two modes a column");
        assert!(boxes.into_iter().all(|b| b.high == b.low), "seed {SEED}");
        assert!(thinned.dots.iter().any(|p| p.class == 2 && p.x == 100.0));
    }
}
