//! Formats quantities as text for people.
//!
//! Scaled units have three significant figures ([`Unit::scaled`]), counts have thousands separators. The JSON
//! has plain numbers for programs.

use std::time::Duration;
use vellum_measure::{Unit, grouped};

/// `bytes` in B, KiB, MiB, GiB or TiB.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    Unit::Bytes.scaled(bytes as f64)
}

/// A size that is a whole number of KiB, MiB or GiB, without a fraction: `4 KiB`, `1536 KiB`, `12 B`.
#[must_use]
pub fn size(bytes: usize) -> String {
    let whole = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = |(shift, _): &(u32, &str)| bytes > 0 && bytes.is_multiple_of(1 << shift);
    let (shift, unit) = whole.into_iter().find(fits).unwrap_or((0, "B"));
    format!("{} {unit}", bytes >> shift)
}

/// `time` in ns, µs, ms, s, min or h.
#[must_use]
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.9995 {
        Unit::Nanoseconds.scaled(time.as_nanos() as f64)
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
#[must_use]
pub fn count(count: u64) -> String {
    grouped(&count.to_string())
}

/// "1 thing" or "N things".
#[must_use]
pub fn many(number: u64, thing: &str) -> String {
    let ending = match thing {
        _ if number == 1 => "",
        _ if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {thing}{ending}", count(number))
}

/// A figure that may be missing, with `digits` digits behind the point.
#[must_use]
pub fn fixed(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sizes_have_no_fraction() {
        let sizes = [
            (0, "0 B"),
            (12, "12 B"),
            (4096, "4 KiB"),
            (3 << 20, "3 MiB"),
            (1 << 30, "1 GiB"),
            (1536 << 10, "1536 KiB"),
        ];
        sizes.iter().for_each(|(bytes, text)| assert_eq!(size(*bytes), *text));
    }

    #[test]
    fn times_read_naturally() {
        for (nanos, text) in [
            (0u64, "0 ns"),
            (80, "80.0 ns"),
            (1_000, "1.00 µs"),
            (999_000, "999 µs"),
            (1_000_000, "1.00 ms"),
            (999_400_000, "999 ms"),
            (999_600_000, "1.00 s"),
            (99_994_000_000, "99.99 s"),
            (100_000_000_000, "1 min 40 s"),
            (3_599_400_000_000, "59 min 59 s"),
            (3_600_000_000_000, "1 h 00 min"),
            (36_060_000_000_000, "10 h 01 min"),
        ] {
            assert_eq!(time(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn counts_are_grouped() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(value), text);
        }
        assert_eq!((many(1, "block"), many(2, "block")), ("1 block".into(), "2 blocks".into()));
        assert_eq!(many(0, "process"), "0 processes");
        assert_eq!((fixed(Some(1.25), 1), fixed(None, 1)), ("1.2".into(), "-".into()));
    }
}
