//! Axes of plots: the unit, the range, and ticks at round values.
//!
//! Values stay in the unit in which they were measured; the axis has the unit that gives small numbers
//! ([`Unit::scale`]). Ticks are round in the axis's unit (round numbers of bytes are not round numbers of
//! MiB). Labels have just enough digits for neighbours to differ, even far from zero.

use crate::units::size;
use std::ops::Range;
use vellum_measure::Unit;

/// One axis of a picture. Its range is in the data's own unit.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// The quantity, with its unit.
    pub(crate) title: String,
    /// Values shown; never empty, always finite.
    pub(crate) range: Range<f64>,
    base: f64,
    steps: Steps,
    /// The unit of the labels of a logarithmic axis.
    unit: Unit,
    /// Names side by side, instead of numbers.
    names: Vec<String>,
}

/// The scale of an axis: equal steps mean equal differences or equal ratios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// Differences.
    Even,
    /// Differences, with ticks only at whole numbers.
    Whole,
    /// Ratios, with ticks at powers of this number.
    Ratios(u32),
}

/// Values closer to zero than this count as zero.
const SIZE_MIN: f64 = 1e-300;
/// The margin at either end, as a share of the range.
const MARGIN: f64 = 0.04;
/// The least ratio of the ends of a logarithmic axis.
const RATIO_MIN: f64 = 2.0;

impl Axis {
    /// An axis around all `values`, with a margin; with `zero`, from zero (or through it).
    pub(crate) fn around(quantity: &str, unit: &Unit, values: impl Iterator<Item = f64>, zero: bool) -> Self {
        let (mut low, mut high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        let mut span = high - low;
        // A range too narrow for different ticks counts as a single value.
        if span <= low.abs().max(high.abs()) * 1e-12 {
            let size = low.abs().max(high.abs());
            span = if size < SIZE_MIN { 1.0 } else { size * 0.1 };
        }
        // There is no margin beyond zero, because most quantities cannot be negative.
        let room = |end: f64| if end == 0.0 { 0.0 } else { MARGIN * span };
        let start = if low >= 0.0 { (low - room(low)).max(0.0) } else { low - room(low) };
        Self::exact(quantity, unit, start..high.max(start + MARGIN * span) + room(high))
    }

    /// An axis with exactly this range, which must not be empty.
    pub(crate) fn exact(quantity: &str, unit: &Unit, range: Range<f64>) -> Self {
        let scale = unit.scale(range.start.abs().max(range.end.abs()));
        let title = if scale.symbol.is_empty() {
            quantity.to_owned()
        } else {
            format!("{quantity} ({})", scale.symbol)
        };
        Self { base: scale.divisor, unit: unit.clone(), ..Self::plain(title, range) }
    }

    /// An axis of numbers as they are, without names.
    fn plain(title: String, range: Range<f64>) -> Self {
        Self { title, range, base: 1.0, steps: Steps::Even, unit: Unit::Count, names: Vec::new() }
    }

    /// An axis of whole numbers from 0 to `most`.
    pub(crate) fn counts(quantity: &str, most: f64) -> Self {
        Self { steps: Steps::Whole, ..Self::plain(quantity.to_owned(), 0.0..most.max(1.0)) }
    }

    /// An axis from 0 to 100 %, for values from 0 to 1.
    pub(crate) fn shares(quantity: &str) -> Self {
        Self { base: 0.01, ..Self::plain(format!("{quantity} (%)"), 0.0..1.0) }
    }

    /// A logarithmic axis around all `values` above zero: ticks at powers of two for bytes, else of ten. Each
    /// label has its own unit.
    pub(crate) fn ratios(quantity: &str, unit: &Unit, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0 && value.is_finite())
            .fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high.max(low * RATIO_MIN)) };
        let power = if *unit == Unit::Bytes { 2 } else { 10 };
        let plain = Self::plain(quantity.to_owned(), low..high);
        Self { steps: Steps::Ratios(power), unit: unit.clone(), ..plain }
    }

    /// An axis of names side by side, each of width 1, from 0.
    pub(crate) fn named(quantity: &str, names: Vec<String>) -> Self {
        let room = names.len() as f64;
        Self { names, ..Self::counts(quantity, room) }
    }

    /// True if names stand below the axis.
    pub(crate) fn is_named(&self) -> bool {
        !self.names.is_empty()
    }

    /// The position of a value, from 0 to 1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        if let Steps::Ratios(_) = self.steps {
            return (value / self.range.start).ln() / (self.range.end / self.range.start).ln();
        }
        (value - self.range.start) / (self.range.end - self.range.start)
    }

    /// Places and labels of about `wanted` ticks, at 1, 2 or 5 times a power of ten of the axis's unit.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        if self.is_named() {
            return self.names.iter().enumerate().map(|(at, name)| (at as f64 + 0.5, name.clone())).collect();
        }
        if let Steps::Ratios(power) = self.steps {
            return self.powers(f64::from(power), wanted);
        }
        let (low, high) = (self.range.start / self.base, self.range.end / self.base);
        let least = if self.steps == Steps::Whole { 1.0 } else { 0.0 };
        // The next smaller step is used if it makes only one tick more.
        let mut step = round_up(((high - low) / (wanted + 1) as f64).max(least));
        if (high / step).floor() - (low / step).ceil() > wanted as f64 {
            step = round_up(step * 1.5);
        }
        let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        // Steps are counted instead of added, so that errors do not add up; a small slack keeps the last
        // step.
        let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        let label = |value: f64| match value {
            0.0 => "0".to_owned(),
            _ if digits == 0 => Unit::Count.scaled(value.round()).replace('-', "−"),
            _ => format!("{value:.digits$}").replace('-', "−"),
        };
        let values = (first..=last).map(|n| if n == 0 { 0.0 } else { n as f64 * step });
        values.map(|value| (value * self.base, label(value))).collect()
    }

    /// At most `wanted` powers of a number, at equal ratios; the ends of the range if it contains none.
    fn powers(&self, power: f64, wanted: usize) -> Vec<(f64, String)> {
        let exponent = |value: f64| value.ln() / power.ln();
        let (first, last) = (exponent(self.range.start) - 1e-9, exponent(self.range.end) + 1e-9);
        let (first, last) = (first.ceil() as i32, last.floor() as i32);
        let whole = |value: f64| self.unit == Unit::Bytes && value >= 1.0 && value.fract() == 0.0;
        let label =
            |value: f64| (value, if whole(value) { size(value as usize) } else { self.unit.scaled(value) });
        if first > last {
            return vec![label(self.range.start), label(self.range.end)];
        }
        let stride = (last - first + 1).unsigned_abs().div_ceil(wanted.max(1) as u32).max(1);
        (first..=last).step_by(stride as usize).map(|n| label(power.powi(n))).collect()
    }
}

/// The least of 1, 2, 5 times a power of ten that is not below `value`; 1 if `value` has none.
pub(crate) fn round_up(value: f64) -> f64 {
    if !(value > 0.0 && value.is_finite()) {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let mut rounds = [1.0, 2.0, 5.0].into_iter().map(|by| by * power);
    rounds.find(|round| *round >= value * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_in_the_axis_unit_and_lie_inside() {
        let axis = Axis::around("time", &Unit::Microseconds, [7.0, 8610.0].into_iter(), true);
        assert_eq!(axis.title, "time (ms)");
        let ticks = axis.ticks(5);
        let labels: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["0", "2", "4", "6", "8"]);
        assert_eq!(ticks[4].0, 8000.0);
        assert!(ticks.iter().all(|(at, _)| (0.0..=1.0).contains(&axis.place(*at))));
    }

    #[test]
    fn labels_distinguish_close_values_far_from_zero() {
        let axis = Axis::around("time", &Unit::Seconds, [100.000_01, 100.000_03].into_iter(), false);
        let labels: Vec<String> = axis.ticks(6).into_iter().map(|(_, label)| label).collect();
        assert!(labels.len() >= 3 && labels.windows(2).all(|pair| pair[0] != pair[1]), "{labels:?}");
    }

    #[test]
    fn one_value_or_none_still_has_a_range() {
        for values in [vec![], vec![0.0], vec![7.0, 7.0], vec![-3.0], vec![1e300], vec![5e-324]] {
            for zero in [false, true] {
                let axis = Axis::around("x", &Unit::Count, values.iter().copied(), zero);
                let Range { start, end } = axis.range;
                assert!(start < end && start.is_finite() && end.is_finite(), "{values:?}: {start}..{end}");
                assert!(values.iter().all(|v| (0.0..=1.0).contains(&axis.place(*v))), "{values:?} {axis:?}");
                assert!(!zero || (start <= 0.0 && end >= 0.0), "{values:?} {axis:?}");
                assert!(axis.ticks(5).len() < 20);
            }
        }
    }

    #[test]
    fn ratios_have_powers_and_units_of_their_own() {
        let axis = Axis::ratios("window", &Unit::Nanoseconds, [2e3, 3e9].into_iter());
        let labels: Vec<String> = axis.ticks(7).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["10.0 µs", "100 µs", "1.00 ms", "10.0 ms", "100 ms", "1.00 s"]);
        assert!((axis.place(2e3), axis.place(3e9)) == (0.0, 1.0));
        assert!((axis.place((2e3f64 * 3e9).sqrt()) - 0.5).abs() < 1e-12);
        let bytes = Axis::ratios("memory", &Unit::Bytes, [5e3, 2e5].into_iter());
        let labels: Vec<String> = bytes.ticks(3).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["8 KiB", "32 KiB", "128 KiB"]);
        for values in [vec![], vec![0.0, -1.0], vec![7.0], vec![f64::INFINITY]] {
            let axis = Axis::ratios("x", &Unit::Count, values.iter().copied());
            assert!(axis.range.start > 0.0 && axis.range.start < axis.range.end, "{values:?}");
            assert!(!axis.ticks(5).is_empty(), "{values:?}");
        }
    }

    #[test]
    fn differences_have_a_true_minus() {
        let axis = Axis::around("d", &Unit::Nanoseconds, [-4.0, 4.0].into_iter(), true);
        assert_eq!(axis.ticks(4).first().map(|(_, label)| label.as_str()), Some("−4"));
    }
}
