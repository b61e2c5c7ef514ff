//! Plots histograms, and chooses the width of their bins.
//!
//! If all values are multiples of one step, such as the clock's, each bin spans the same number of steps, so
//! that no comb pattern appears. Bin edges then lie half a step from the nearest values. Otherwise bins
//! have the width of Freedman and Diaconis ("On the histogram as a density estimator", 1981). This width is
//! rounded up to 1, 2 or 5 times a power of ten. There are never more bins than the SVG or the terminal
//! can show. A bin that is not empty is always visible, however small.

use super::Plot;
use super::axis::{Axis, round_up};
use super::palette::{CLASSES, Ink, class};
use super::picture::{Box, Detail, Mark, Panel, Picture, Swatch};
use super::subject::{Shown, cause_keys, clean, omissions, scaled};
use vellum_measure::quantile;

/// The bins of a histogram: equal ranges side by side.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bins {
    start: f64,
    width: f64,
    count: usize,
}

/// The largest rounding error of a whole number of steps, in steps.
const STEP_SLACK: f64 = 1e-3;
/// The largest ratio of range to step. A smaller step is a chance distance between continuous values, not a
/// clock's.
const STEPS_MAX: f64 = 1e7;

impl Bins {
    /// The bins for the sorted values of all series, on an axis that also includes `floor`; `advised` wide,
    /// or `wished` if given.
    fn new(sorted: &[f64], advised: f64, floor: f64, bins_max: usize, wished: Option<f64>) -> Self {
        let (Some(low), Some(high)) = (sorted.first(), sorted.last()) else {
            return Self { start: 0.0, width: 1.0, count: 1 };
        };
        if low == high {
            // A single value gets one bin around it, a tenth of its size, so that the axis has numbers.
            let width = wished.unwrap_or(if *low == 0.0 { 1.0 } else { low.abs() * 0.1 });
            return Self { start: low - width / 2.0, width, count: 1 };
        }
        let least = (high - floor.min(*low)) / bins_max.max(2).saturating_sub(1) as f64;
        let (start, width) = match (wished, step(sorted)) {
            (Some(wished), _) => {
                let width = wished * (least / wished).ceil().max(1.0);
                ((low / width).floor() * width, width)
            }
            (None, Some(step)) => {
                let width = step * (least.max(advised) / step - STEP_SLACK).ceil().max(1.0);
                (low - step / 2.0, width)
            }
            (None, None) => {
                let width = round_up(least.max(advised));
                ((low / width).floor() * width, width)
            }
        };
        let count = ((high - start) / width).floor() as usize + 1;
        Self { start, width, count }
    }

    fn of(&self, value: f64) -> usize {
        (((value - self.start) / self.width).max(0.0) as usize).min(self.count - 1)
    }

    fn left(&self, bin: usize) -> f64 {
        self.start + self.width * bin as f64
    }
}

/// The step of which all distances between sorted values are multiples, if there is one.
fn step(sorted: &[f64]) -> Option<f64> {
    let distances = || sorted.windows(2).map(|pair| pair[1] - pair[0]).filter(|distance| *distance > 0.0);
    // Rounding gives equal values slightly different bits; these distances do not count.
    let span = sorted.last()? - sorted.first()?;
    let step = distances().filter(|distance| *distance > span / STEPS_MAX).fold(f64::INFINITY, f64::min);
    let off = |distance: f64| (distance / step - (distance / step).round()).abs();
    (step.is_finite() && distances().all(|distance| off(distance) < STEP_SLACK)).then_some(step)
}

/// The width of Freedman and Diaconis; 0 if the middle half has only one value.
fn advised(sorted: &[f64]) -> f64 {
    let middle =
        quantile(sorted, 0.75).zip(quantile(sorted, 0.25)).map_or(0.0, |(third, first)| third - first);
    2.0 * middle / (sorted.len() as f64).cbrt()
}

pub(super) fn picture(plot: &Plot, detail: Detail) -> Picture {
    let shown = plot.shown();
    let mut sorted: Vec<f64> = shown.iter().flat_map(|one| one.plain()).collect();
    sorted.sort_by(f64::total_cmp);
    let floor = if plot.zero { 0.0 } else { f64::INFINITY };
    // The narrowest series determines the width: the spread of all series together would give too wide bins.
    let narrowest = shown.iter().map(|one| advised(&one.plain().collect::<Vec<f64>>())).reduce(f64::min);
    let bins = Bins::new(&sorted, narrowest.unwrap_or(0.0), floor, detail.bins, plot.bin);
    let (start, end) = (bins.start.min(floor), bins.left(bins.count));
    let x =
        Axis::exact(&clean(&plot.quantity), &plot.unit, start..if plot.zero { end.max(0.0) } else { end });
    let heights: Vec<Vec<Vec<usize>>> = shown.iter().map(|one| heights(one, &bins)).collect();
    let most = heights.iter().flatten().map(|bin| bin.iter().sum::<usize>()).max().unwrap_or(0);
    let panels = shown.iter().zip(&heights).map(|(one, heights)| Panel {
        name: if shown.len() > 1 { clean(one.name) } else { String::new() },
        remark: one.remark("observations"),
        y: Axis::counts("observations", most as f64 * 1.04),
        marks: marks(heights, &bins),
    });
    let panels = panels.collect();
    let mut notes = omissions(&shown, plot.layers, &plot.unit);
    notes.push(format!("Bins are {} wide; even a single observation shows.", scaled(&plot.unit, bins.width)));
    let title = plot.title_or(|| format!("{}: histogram", plot.names()));
    Picture { title, x, panels, key: cause_keys(&shown, Swatch::Area), notes }
}

/// Counts by bin, then by class: ordinary observations first, then each cause.
fn heights(shown: &Shown<'_>, bins: &Bins) -> Vec<Vec<usize>> {
    let mut heights = vec![vec![0; CLASSES]; bins.count];
    for value in &shown.values {
        heights[bins.of(value.value)][class(value.cause)] += 1;
    }
    heights
}

/// Boxes by class; the boxes of a bin are stacked.
fn marks(heights: &[Vec<usize>], bins: &Bins) -> Vec<Mark> {
    let mut marks = Vec::new();
    for class in 0..CLASSES {
        let ink = Ink::of_class(class);
        let boxes =
            heights.iter().enumerate().filter(|(_, counts)| counts[class] > 0).map(|(bin, counts)| {
                let low = counts[..class].iter().sum::<usize>();
                Box {
                    left: bins.left(bin),
                    right: bins.left(bin + 1),
                    low: low as f64,
                    high: (low + counts[class]) as f64,
                }
            });
        let boxes: Vec<Box> = boxes.collect();
        if !boxes.is_empty() {
            marks.push(Mark::Bars(ink, boxes));
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Rng;

    /// At most 150 bins on an axis that also includes `floor`.
    fn bins(sorted: &[f64], floor: f64, wished: Option<f64>) -> Bins {
        Bins::new(sorted, advised(sorted), floor, 150, wished)
    }

    #[test]
    fn bins_follow_the_clock() {
        // Steps of 10 ns less a base of 3; bins that are not whole steps would make a comb.
        let few = [17.0, 17.0, 27.0, 37.0, 67.0];
        let mode = [vec![17.0; 100], vec![27.0, 67.0]].concat();
        for (sorted, wished, (start, width, count)) in [
            (&few[..], None, (12.0, 30.0, 2)),
            (&few, Some(1.0), (17.0, 1.0, 51)),
            (&mode, None, (12.0, 10.0, 6)),
            (&[20.0, 20.0], None, (19.0, 2.0, 1)),
            (&[], None, (0.0, 1.0, 1)),
        ] {
            assert_eq!(bins(sorted, f64::INFINITY, wished), Bins { start, width, count }, "{sorted:?}");
        }
    }

    #[test]
    fn values_without_steps_get_round_bins() {
        let mut rng = Rng::new(5);
        let mut sorted: Vec<f64> = (0..1000).map(|_| 100.0 + 3.0 * rng.unit()).collect();
        sorted.sort_by(f64::total_cmp);
        let free = bins(&sorted, f64::INFINITY, None);
        assert_eq!((free.start, free.width), (100.0, 0.5), "3/1000^(1/3) is 0.3, seed 5");
        assert_eq!(bins(&sorted, 0.0, None).width, 1.0, "from zero, 150 bins have to reach 103");
    }

    #[test]
    fn there_are_never_more_bins_than_can_be_shown_and_each_value_has_one() {
        let mut rng = Rng::new(6);
        for round in 0..200 {
            let n = 1 + rng.below(300) as usize;
            let scale = 10f64.powi(rng.below(12) as i32 - 6);
            let mut sorted: Vec<f64> =
                (0..n).map(|_| scale * (rng.unit() - 0.3) * 10f64.powf(rng.unit() * 4.0)).collect();
            sorted.sort_by(f64::total_cmp);
            let wished = (round % 3 == 0).then_some(scale * rng.unit() + 1e-9);
            let floor = if round % 2 == 0 { 0.0 } else { f64::INFINITY };
            let bins = Bins::new(&sorted, advised(&sorted), floor, 60, wished);
            assert!(bins.count <= 61, "{bins:?}, seed 6, round {round}");
            for value in sorted {
                let left = bins.left(bins.of(value));
                let slack = 1e-9 * bins.width;
                assert!(
                    left - slack <= value && value <= left + bins.width + slack,
                    "{value} {bins:?} round {round}"
                );
            }
        }
    }
}
