//! Parsers of amounts in options and configuration files: sizes, times with their units, and percentages.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A time with its unit, within limits.
///
/// # Errors
/// A sentence with the format of a time, and the limits.
pub fn time(text: &str, limits: &RangeInclusive<Duration>) -> Result<Duration, String> {
    duration(text).filter(|time| limits.contains(time)).ok_or_else(|| {
        let [from, to] = [limits.start(), limits.end()].map(|limit| written(*limit));
        format!("write a time with its unit, such as 20us, 500ms, 6s, 2min or 1h, from {from} to {to}")
    })
}

/// A time with its unit: a number and ns, us (µs), ms, s, min (m) or h.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit.trim_start())?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

/// Units by name, in seconds; of names with one length, the first is written.
const UNITS: [(&str, f64); 9] = [
    ("h", 3600.0),
    ("min", 60.0),
    ("m", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ns", 1e-9),
];

/// A time in the form that [`time`] reads, in the largest unit of which it is at least one.
fn written(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let unit = UNITS.into_iter().find(|(_, unit)| seconds >= *unit);
    unit.map_or_else(|| "0s".to_owned(), |(name, unit)| format!("{}{name}", seconds / unit))
}

/// A size, by the grammar of [`vellum_sys::text::size`]: `512M`, `512MiB`, `1.5G`, `6 GiB`, or plain bytes.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    vellum_sys::text::size(text.as_bytes())
}

/// A percentage, with or without its sign, as a number: 2 for 2 %. `None` if `text` is not a percentage.
#[must_use]
pub fn percentage(text: &str) -> Option<f64> {
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    number.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_limits() {
        let day = Duration::ZERO..=Duration::from_secs(24 * 3600);
        for (text, us) in [
            ("20us", 20),
            ("20 µs", 20),
            ("20 μs", 20),
            ("0.5 ms", 500),
            ("500ms", 500_000),
            ("1.5 s", 1_500_000),
            ("2min", 120_000_000),
            ("2m", 120_000_000),
            ("1h", 3_600_000_000),
            ("0s", 0),
        ] {
            assert_eq!(time(text, &day), Ok(Duration::from_micros(us)), "{text}");
        }
        for wrong in ["6", "s", "", "-1s", "25h", "1e3s", "6 sec", "1 parsec", "1.2.3s"] {
            assert!(time(wrong, &day).unwrap_err().ends_with("from 0s to 24h"), "{wrong}");
        }
        let short = Duration::from_nanos(1)..=Duration::from_millis(1500);
        assert!(time("0s", &short).unwrap_err().ends_with("from 1ns to 1.5s"));
    }

    #[test]
    fn percentages_are_numbers() {
        assert_eq!(["2%", "50", " 1.5 % "].map(percentage), [Some(2.0), Some(50.0), Some(1.5)]);
        assert!(["", "x", "%", "inf", "NaN"].iter().all(|text| percentage(text).is_none()));
    }
}
