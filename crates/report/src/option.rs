//! Command-line parsers of option values that several commands share.

use crate::amount::{self, percentage};
use std::time::Duration;

/// The longest time of an option.
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A time with its unit.
///
/// # Errors
/// A sentence with the format, and the limits.
pub fn time(text: &str) -> Result<Duration, String> {
    amount::time(text, &(Duration::from_nanos(1)..=TIME_MAX))
}

/// A time with its unit; zero is allowed.
///
/// # Errors
/// Those of [`time`].
pub fn time_or_none(text: &str) -> Result<Duration, String> {
    amount::time(text, &(Duration::ZERO..=TIME_MAX))
}

/// A part of a whole, written as a percentage above 0.
///
/// # Errors
/// A sentence with the format.
pub fn percent(text: &str) -> Result<f64, String> {
    part(text, |percent| percent > 0.0, " above 0, such as 1%")
}

/// A part of a whole, written as a percentage; 0 is allowed.
///
/// # Errors
/// Those of [`percent`].
pub fn percent_or_none(text: &str) -> Result<f64, String> {
    part(text, |percent| percent >= 0.0, ", such as 0.05%")
}

fn part(text: &str, is_allowed: fn(f64) -> bool, format: &str) -> Result<f64, String> {
    let percent = percentage(text).filter(|percent| is_allowed(*percent) && *percent <= 100.0);
    percent.map(|percent| percent / 100.0).ok_or_else(|| format!("write a percentage{format}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_parts_have_bounds() {
        assert!(time("20us").is_ok() && time("0s").is_err() && time("8761h").is_err());
        assert_eq!((percent("1%"), percent("50")), (Ok(0.01), Ok(0.5)));
        assert!(["0%", "101%", "x", "-1", "NaN"].iter().all(|text| percent(text).is_err()));
        assert_eq!((percent_or_none("0%"), time_or_none("0s")), (Ok(0.0), Ok(Duration::ZERO)));
        assert!(percent_or_none("-1").is_err() && percent_or_none("NaN").is_err());
    }
}
