//! A working-set curve: for each window T, the mean number of pages held (z) and the fault rate (f).
//!
//! Points (T, z, f) come from the references, with z rising and f falling; values between them are
//! interpolated. Between two points z follows the only quotient of quadratics that has their values and
//! slopes and never falls. f falls exponentially, as in programs whose pages are referenced at random rates.
//!
//! A curve has no values for windows outside the first and last point.
//!
//! The unit of time is not part of a curve: windows are in ticks of the virtual time in which references were
//! counted, fault rates per tick.

use serde::{Deserialize, Serialize};

use crate::shape::{concave_slopes, falling, steps};

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// T, in ticks.
    pub window: f64,
    /// z(T), in pages.
    pub pages: f64,
    /// f(T), in faults a tick.
    pub faults: f64,
}

/// The functions z(T) and f(T) between two windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Point>", into = "Vec<Point>")]
pub struct Curve {
    points: Vec<Point>,
}

/// Errors of points that do not form a curve.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CurveError {
    /// Too few windows for a slope.
    #[error("{0} windows make no curve: at least {WINDOWS_MIN} are needed")]
    Windows(usize),
    /// The numbers of windows, page counts and fault rates differ.
    #[error(
        "{windows} windows, but {pages} page counts and {faults} fault rates: there must be as many of each"
    )]
    Lengths {
        /// Windows given.
        windows: usize,
        /// Page counts given.
        pages: usize,
        /// Fault rates given.
        faults: usize,
    },
    /// The windows do not rise from above 0.
    #[error("window {at} is {window} ticks: windows must rise, from above 0")]
    Order {
        /// The place of the wrong window, from 0.
        at: usize,
        /// The wrong window.
        window: f64,
    },
    /// A page count or rate is negative or not a number.
    #[error("at a window of {window} ticks, {value} is no number of pages or rate of faults")]
    Value {
        /// The window.
        window: f64,
        /// The wrong value.
        value: f64,
    },
}

/// The least number of windows: a slope needs two.
pub const WINDOWS_MIN: usize = 2;

impl Curve {
    /// The curve of mean working-set sizes alone. f is the slope of the least concave curve above them.
    ///
    /// # Errors
    /// [`CurveError`] if the windows do not rise from above 0 or a size is negative.
    pub fn of_sets(windows: &[f64], pages: &[f64]) -> Result<Self, CurveError> {
        check(windows, pages, pages)?;
        let slopes = concave_slopes(windows, pages);
        let widths: Vec<f64> = steps(windows).collect();
        let mut sum = 0.0;
        let fitted = slopes.iter().zip(&widths).map(|(slope, width)| {
            sum += slope * width;
            sum
        });
        let points = fitted.enumerate().map(|(at, pages)| Point {
            window: windows[at],
            pages,
            faults: slope_at(at, &slopes, &widths),
        });
        Ok(Self { points: points.collect() })
    }

    /// The curve of mean working-set sizes and counted fault rates. Rates that rise by noise are levelled.
    ///
    /// # Errors
    /// [`CurveError`] if the windows do not rise from above 0, or a size or rate is negative.
    pub fn of_counts(windows: &[f64], pages: &[f64], faults: &[f64]) -> Result<Self, CurveError> {
        check(windows, pages, faults)?;
        let widths: Vec<f64> = steps(windows).collect();
        let faults = falling(faults, &widths);
        let mut most = 0.0f64;
        let points = windows.iter().zip(pages).zip(faults).map(|((window, pages), faults)| {
            most = most.max(*pages);
            Point { window: *window, pages: most, faults }
        });
        Ok(Self { points: points.collect() })
    }

    /// The points, windows rising.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The smallest window.
    #[must_use]
    pub fn first(&self) -> Point {
        self.points[0]
    }

    /// The largest window.
    #[must_use]
    pub fn last(&self) -> Point {
        self.points[self.points.len() - 1]
    }

    /// The part of the curve up to a window; `None` if fewer than two points are left.
    #[must_use]
    pub fn up_to(&self, window: f64) -> Option<Self> {
        let count = self.points.partition_point(|point| point.window <= window);
        (count >= WINDOWS_MIN).then(|| Self { points: self.points[..count].to_vec() })
    }

    /// z and f at a window; `None` outside the curve.
    #[must_use]
    pub fn at(&self, window: f64) -> Option<Point> {
        if !(self.first().window..=self.last().window).contains(&window) {
            return None;
        }
        let after = self.points.partition_point(|point| point.window < window);
        let right = self.points[after];
        let left = self.points[after.saturating_sub(1)];
        Some(if right.window == window { right } else { between(left, right, window) })
    }

    /// The point whose window holds `pages` on average; `None` for fewer pages than at the first window or
    /// more than at the last.
    ///
    /// If z is flat, the smallest such window counts.
    #[must_use]
    pub fn at_pages(&self, pages: f64) -> Option<Point> {
        if !(self.first().pages..=self.last().pages).contains(&pages) {
            return None;
        }
        let after = self.points.partition_point(|point| point.pages < pages);
        let right = self.points[after];
        if after == 0 || right.pages == pages {
            return Some(right);
        }
        let left = self.points[after - 1];
        let (mut low, mut high) = (left.window, right.window);
        // z rises between the two; 50 bisections reduce the error to rounding.
        for _ in 0..50 {
            let middle = low + (high - low) / 2.0;
            let below = between(left, right, middle).pages < pages;
            if below { low = middle } else { high = middle }
        }
        Some(Point { pages, ..between(left, right, high) })
    }

    /// The points of the curve, and `more` points in each segment between them, at equal ratios of windows.
    pub fn refined(&self, more: usize) -> impl Iterator<Item = Point> + '_ {
        let within = self.points.windows(2).flat_map(move |pair| {
            let (left, right) = (pair[0], pair[1]);
            let ratio = right.window / left.window;
            (0..=more).map(move |step| {
                if step == 0 {
                    return left;
                }
                between(left, right, left.window * ratio.powf(step as f64 / (more + 1) as f64))
            })
        });
        within.chain(std::iter::once(self.last()))
    }
}

impl TryFrom<Vec<Point>> for Curve {
    type Error = CurveError;

    fn try_from(points: Vec<Point>) -> Result<Self, CurveError> {
        let column = |of: fn(&Point) -> f64| points.iter().map(of).collect::<Vec<f64>>();
        Self::of_counts(&column(|p| p.window), &column(|p| p.pages), &column(|p| p.faults))
    }
}

impl From<Curve> for Vec<Point> {
    fn from(curve: Curve) -> Self {
        curve.points
    }
}

fn check(windows: &[f64], pages: &[f64], faults: &[f64]) -> Result<(), CurveError> {
    if windows.len() != pages.len() || windows.len() != faults.len() {
        let (windows, pages, faults) = (windows.len(), pages.len(), faults.len());
        return Err(CurveError::Lengths { windows, pages, faults });
    }
    if windows.len() < WINDOWS_MIN {
        return Err(CurveError::Windows(windows.len()));
    }
    for (at, width) in steps(windows).enumerate() {
        if !(width > 0.0 && windows[at].is_finite()) {
            return Err(CurveError::Order { at, window: windows[at] });
        }
    }
    for (value, at) in pages.iter().zip(0..).chain(faults.iter().zip(0..)) {
        if !(*value >= 0.0 && value.is_finite()) {
            return Err(CurveError::Value { window: windows[at], value: *value });
        }
    }
    Ok(())
}

/// The slope at the end of segment `at`, with ln f interpolated linearly between the middles of neighbouring
/// segments.
fn slope_at(at: usize, slopes: &[f64], widths: &[f64]) -> f64 {
    let mixed = |left: usize, right: usize, reach: f64| {
        // `reach` is the part of the way from the middle of `left` to the middle of `right`; 1 and more is
        // beyond.
        let (a, b) = (slopes[left], slopes[right]);
        if a <= 0.0 || b <= 0.0 { b.max(0.0) } else { (a.ln() + (b.ln() - a.ln()) * reach).exp() }
    };
    let last = slopes.len() - 1;
    if at == last {
        let span = widths[last - 1] + widths[last];
        return mixed(last - 1, last, 1.0 + widths[last] / span).min(slopes[last]);
    }
    // Before the first window, the slope of z differs from that of the line to the origin.
    if at == 0 && last >= 2 {
        let span = widths[1] + widths[2];
        return mixed(1, 2, -widths[1] / span).clamp(slopes[1], slopes[0]);
    }
    mixed(at, at + 1, widths[at] / (widths[at] + widths[at + 1]))
}

fn between(left: Point, right: Point, window: f64) -> Point {
    let width = right.window - left.window;
    let x = ((window - left.window) / width).clamp(0.0, 1.0);
    let faults = if left.faults > 0.0 && right.faults > 0.0 {
        left.faults * (right.faults / left.faults).powf(x)
    } else {
        left.faults + (right.faults - left.faults) * x
    };
    // The quotient of quadratics with both values and both slopes that never falls between them (Gregory and
    // Delbourgo 1982).
    let rise = right.pages - left.pages;
    let secant = rise / width;
    if secant <= 0.0 {
        return Point { window, pages: right.pages, faults };
    }
    let around = x * (1.0 - x);
    let bent = (secant * x * x + left.faults * around)
        / (secant + (left.faults + right.faults - 2.0 * secant) * around);
    Point { window, pages: left.pages + rise * bent, faults }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pages referenced at random, each at `rate` a tick: z = n·(1 − e^(−rate·T)), f its slope.
    fn random_pages(window: f64) -> (f64, f64) {
        let groups: [(f64, f64); 2] = [(40.0, 1e-3), (100.0, 2e-5)];
        groups.iter().fold((0.0, 0.0), |(z, f), (n, rate)| {
            let out = (-rate * window).exp();
            (z + n * (1.0 - out), f + n * rate * out)
        })
    }

    #[test]
    fn slopes_of_a_smooth_curve_are_exact() {
        for ratio in [1.2f64, 1.5] {
            let windows: Vec<f64> =
                (0..(60.0 / ratio.log2()) as i32 / 4).map(|i| 100.0 * ratio.powi(i)).collect();
            let pages: Vec<f64> = windows.iter().map(|w| random_pages(*w).0).collect();
            let curve = Curve::of_sets(&windows, &pages).unwrap();
            for window in [150.0, 700.0, 3000.0, 20_000.0] {
                let (z, f) = random_pages(window);
                let point = curve.at(window).unwrap();
                assert!((point.pages / z - 1.0).abs() < 0.005, "z({window}) = {} for {z}", point.pages);
                assert!((point.faults / f - 1.0).abs() < 0.15, "f({window}) = {} for {f}", point.faults);
            }
        }
    }

    #[test]
    fn the_window_for_a_size_by_hand() {
        let curve = Curve::of_counts(&[1.0, 2.0, 3.0], &[2.0, 4.0, 4.0], &[2.0, 0.0, 0.0]).unwrap();
        assert_eq!(curve.at_pages(2.0).unwrap().window, 1.0);
        assert_eq!(curve.at_pages(4.0).unwrap().window, 2.0);
        assert_eq!((curve.at_pages(1.0), curve.at_pages(5.0)), (None, None));
    }

    #[test]
    fn invalid_points_are_refused() {
        assert_eq!(Curve::of_sets(&[1.0], &[1.0]), Err(CurveError::Windows(1)));
        assert_eq!(Curve::of_sets(&[1.0, 1.0], &[1.0, 1.0]), Err(CurveError::Order { at: 1, window: 1.0 }));
        assert_eq!(Curve::of_sets(&[0.0, 1.0], &[1.0, 1.0]), Err(CurveError::Order { at: 0, window: 0.0 }));
        assert!(matches!(Curve::of_sets(&[1.0, 2.0], &[1.0]), Err(CurveError::Lengths { .. })));
        assert!(matches!(Curve::of_sets(&[1.0, 2.0], &[1.0, f64::NAN]), Err(CurveError::Value { .. })));
    }

    proptest! {
        #[test]
        fn between_points_z_rises_and_f_falls(
            steps in prop::collection::vec((0.1f64..10.0, 0.0f64..5.0), 2..12),
        ) {
            let (mut window, mut z, mut windows, mut pages) = (0.0, 0.0, vec![], vec![]);
            for (width, rise) in steps {
                window += width;
                z += rise;
                windows.push(window);
                pages.push(z);
            }
            let curve = Curve::of_sets(&windows, &pages).unwrap();
            let fine: Vec<Point> = curve.refined(7).collect();
            for pair in fine.windows(2) {
                prop_assert!(pair[1].window > pair[0].window);
                prop_assert!(pair[1].pages >= pair[0].pages - 1e-9);
                prop_assert!(pair[1].faults <= pair[0].faults + 1e-9);
            }
            for point in &fine {
                let back = curve.at_pages(point.pages).unwrap();
                prop_assert!(back.window <= point.window * (1.0 + 1e-6), "{back:?} {point:?}");
            }
        }
    }
}
