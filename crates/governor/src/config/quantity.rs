//! Sizes, times and parts as they are written: a number and its unit, never a bare number.

use super::Budget;
use std::time::Duration;
use vellum_probe::Bytes;

/// A number, and the word after it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

/// A size of memory, or a part of the machine's.
pub(super) fn budget(text: &str) -> Option<Budget> {
    let (number, unit) = split(text)?;
    let shift = match unit {
        "%" => return (number > 0.0 && number <= 100.0).then_some(Budget::Part(number / 100.0)),
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    let bytes = number * f64::from(shift).exp2();
    (bytes >= 1.0 && bytes < (1u64 << 60) as f64).then_some(Budget::Bytes(Bytes(bytes as u64)))
}

/// A time.
pub(super) fn time(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "min" => number * 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}

/// A part of 1, written in per cent.
pub(super) fn part(text: &str) -> Option<f64> {
    match split(text)? {
        (number, "%") if (0.0..=100.0).contains(&number) => Some(number / 100.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(budget("1.5 GiB"), Some(Budget::Bytes(Bytes(3 << 29))));
        assert_eq!(budget("64MiB"), Some(Budget::Bytes(Bytes(64 << 20))));
        assert_eq!(budget("75 %"), Some(Budget::Part(0.75)));
        assert_eq!(time("100 ms"), Some(Duration::from_millis(100)));
        assert_eq!(time("2 min"), Some(Duration::from_secs(120)));
        assert_eq!(part("2.5%"), Some(0.025));
        for wrong in
            ["", "64", "GiB", "-1 GiB", "0 MiB", "101 %", "1e3 GiB", "5 GB", "1..2 MiB", "99999999999 TiB"]
        {
            assert_eq!(budget(wrong), None, "{wrong}");
        }
        for wrong in ["", "5", "0 s", "-1 s", "1 h", "s"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
        assert_eq!(part("0.02"), None);
    }
}
