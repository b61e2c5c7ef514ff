//! Formats numbers for tables, for quantities with a unit, and for files.

use std::fmt;

/// A value with more zeros after the point is shown as zero.
const DECIMALS_MAX: i32 = 12;

/// Three significant digits, or all digits before the point; `-` if `value` is not finite.
#[must_use]
pub fn short(value: f64) -> String {
    match value.abs() {
        a if !a.is_finite() => "-".to_owned(),
        a if a >= 100.0 => format!("{value:.0}"),
        a if a >= 10.0 => format!("{value:.1}"),
        a if a >= 1.0 || a == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The difference of a ratio from one, as a percentage with its sign: 1.02 is "+2.00 %".
#[must_use]
pub fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent.abs() {
        a if !a.is_finite() => "-".to_owned(),
        a if a >= 100.0 => format!("{percent:+.0} %"),
        a if a >= 10.0 => format!("{percent:+.1} %"),
        a if a >= 1.0 => format!("{percent:+.2} %"),
        _ => format!("{percent:+.3} %"),
    }
}

/// Three significant figures, or all digits of a larger whole part. Zero is plain.
pub(crate) fn figures(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        // 0.00123 has its first figure in the third place.
        s if s < 0.0995 => (2 - s.log10().floor() as i32).clamp(2, DECIMALS_MAX),
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    grouped(&format!("{value:.*}", decimals as usize))
}

/// A number as text, with its whole part in groups of three digits.
#[must_use]
pub fn grouped(text: &str) -> String {
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut result = String::with_capacity(text.len() + whole.len() / 3);
    for (index, character) in whole.chars().enumerate() {
        let digits_left = whole.len() - index;
        if digits_left.is_multiple_of(3) && result.ends_with(|c: char| c.is_ascii_digit()) {
            result.push(',');
        }
        result.push(character);
    }
    result + fraction
}

/// Sizes of numbers written without an exponent. Outside, a number would have up to 300 zeros.
const PLAIN: std::ops::Range<f64> = 1e-6..1e16;

/// A finite number, written in the fewest digits that are read back as the same number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number(pub(crate) f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        let plain = size == 0.0 || PLAIN.contains(&size);
        if plain { write!(f, "{}", self.0) } else { write!(f, "{:e}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_are_short() {
        for (value, text) in [
            (0.01234, "0.012"),
            (1.0, "1.00"),
            (12.34, "12.3"),
            (123.4, "123"),
            (98_765.0, "98765"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn ratios_are_percentages() {
        for (ratio, text) in [
            (1.00995, "+0.995 %"),
            (0.5, "-50.0 %"),
            (1.021, "+2.10 %"),
            (4.0, "+300 %"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(percent(ratio), text);
        }
    }

    #[test]
    fn few_digits() {
        for (value, text) in [
            (486.0, "486"),
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1e15, "1000000000000000"),
            (1e16, "1e16"),
            (1e300, "1e300"),
            (-2.5e-9, "-2.5e-9"),
        ] {
            assert_eq!(Number(value).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn every_number_comes_back(value in prop::num::f64::ANY.prop_filter("finite", |v| v.is_finite())) {
            let back: f64 = Number(value).to_string().parse().unwrap();
            prop_assert_eq!(back.to_bits(), value.to_bits());
        }
    }
}
