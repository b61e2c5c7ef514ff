//! Numbers with their units, for people.
//!
//! Three significant figures where the unit is scaled, thousands separators where it is a count. Machines get plain
//! integers from the JSON instead.

use std::time::Duration;

/// `bytes` in B, KiB, MiB, GiB or TiB.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // What would be shown as 1000 or more is shown in the next unit, but for the last.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", figures(value), UNITS[unit])
}

/// `time` in us, ms, s, min or h.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 999.5e-6 {
        format!("{} us", figures(seconds * 1e6))
    } else if seconds < 0.9995 {
        format!("{} ms", figures(seconds * 1e3))
    } else if seconds < 99.995 {
        format!("{seconds:.2} s")
    } else if seconds < 3599.5 {
        let whole = seconds.round() as u64;
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        let minutes = (seconds / 60.0).round() as u64;
        format!("{} h {:02} min", minutes / 60, minutes % 60)
    }
}

/// `count` with thousands separators.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 thing" or "N things".
pub(crate) fn many(number: u64, thing: &str) -> String {
    let ending = match thing {
        _ if number == 1 => "",
        _ if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {thing}{ending}", count(number))
}

/// Three significant figures, for a value below 1024.
fn figures(value: f64) -> String {
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_change_unit_before_the_figure_grows_to_four() {
        for (value, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (10_240, "10.0 KiB"),
            (999 << 10, "999 KiB"),
            (1000 << 10, "0.98 MiB"),
            (412 << 20, "412 MiB"),
            (1 << 30, "1.00 GiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }

    #[test]
    fn times_read_naturally() {
        for (micros, text) in [
            (0u64, "0.00 us"),
            (999, "999 us"),
            (1_000, "1.00 ms"),
            (999_400, "999 ms"),
            (999_600, "1.00 s"),
            (99_994_000, "99.99 s"),
            (100_000_000, "1 min 40 s"),
            (3_599_400_000, "59 min 59 s"),
            (3_600_000_000, "1 h 00 min"),
            (36_060_000_000, "10 h 01 min"),
        ] {
            assert_eq!(time(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn counts_are_grouped() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(value), text);
        }
        assert_eq!((many(1, "block"), many(2, "block")), ("1 block".into(), "2 blocks".into()));
        assert_eq!(many(0, "process"), "0 processes");
    }
}
