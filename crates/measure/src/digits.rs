//! Number formats for tables.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
