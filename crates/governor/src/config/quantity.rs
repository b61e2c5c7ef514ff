//! Parsers of sizes, times and percentages in a job table: those of [`vellum_report::amount`], with limits.

use super::Budget;
use std::time::Duration;
use vellum_kernel::Bytes;
use vellum_report::amount;

/// No job runs in less, and a number without a unit is hardly meant in bytes.
const BUDGET_MIN: u64 = 1 << 20;

/// A size of memory, or a part of the machine's.
pub(crate) fn budget(text: &str) -> Option<Budget> {
    let bytes = || amount::size(text).filter(|bytes| (BUDGET_MIN..1 << 60).contains(bytes));
    let part = part(text).filter(|part| *part > 0.0).map(Budget::Part);
    part.or_else(|| bytes().map(|bytes| Budget::Bytes(Bytes(bytes))))
}

pub(crate) fn time(text: &str) -> Option<Duration> {
    amount::duration(text).filter(|time| !time.is_zero())
}

pub(crate) fn part(text: &str) -> Option<f64> {
    let signed = text.trim_end().ends_with('%');
    let percent = amount::percentage(text).filter(|percent| signed && (0.0..=100.0).contains(percent));
    percent.map(|percent| percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(budget("1.5 GiB"), Some(Budget::Bytes(Bytes(3 << 29))));
        assert_eq!(budget("64M"), Some(Budget::Bytes(Bytes(64 << 20))));
        assert_eq!(budget("75 %"), Some(Budget::Part(0.75)));
        assert_eq!(time("100 ms"), Some(Duration::from_millis(100)));
        assert_eq!(time("2 min"), Some(Duration::from_secs(120)));
        assert_eq!(part("2.5%"), Some(0.025));
        for wrong in
            ["", "64", "GiB", "-1 GiB", "0 MiB", "101 %", "1e3 GiB", "5 GB", "1..2 MiB", "99999999999 TiB"]
        {
            assert_eq!(budget(wrong), None, "{wrong}");
        }
        for wrong in ["", "5", "0 s", "-1 s", "1 d", "s"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
        assert_eq!(part("0.02"), None);
    }
}
