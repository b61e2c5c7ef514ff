//! Filters: select parts of a file of observations by name, by position or by quantity.
//!
//! Filters work on series, not on lines of text, so that an observation keeps its columns. A range of
//! observations is selected in all columns. A column selected alone is a series with the starts and the base.
//!
//! ```text
//! entry ─▶ name, labels match? ─▶ quantities, each a series ─▶ observations in range ─▶ entries
//! ```
//!
//! Invariants: the order of entries and observations is kept; marks stay whole; a summary is never cut,
//! because it does not contain the values.
//!
//! Source: the tools `bgrep NAME` and `bcut 1-201` of Bates 1999, written because the usual tools failed on
//! long lines. His ranges count words, with the header as the first word. Our ranges count observations, so
//! his `1-201` is `1-200` here.

use std::ops::RangeInclusive;
use std::str::FromStr;

use regex::Regex;
use thiserror::Error;

use crate::Series;
use crate::line::Entry;

/// Which entries pass the filter. The default is all.
///
/// ```
/// use vellum_measure::filter::Filter;
/// use vellum_measure::line::{OnError, Reader, write_entry};
///
/// let text = "BASE:1l:Observation::Time:us 486 402 431\nSORT:1l:Observation::Time:us 7\n";
/// let name = regex::Regex::new("^BASE$").ok();
/// let filter = Filter { name, ranges: "1,3-".parse().ok(), ..Filter::default() };
/// let mut out = Vec::new();
/// for entry in Reader::new(text.as_bytes(), OnError::Refuse) {
///     for entry in filter.apply(entry.unwrap()) {
///         write_entry(&mut out, &entry).unwrap();
///     }
/// }
/// assert_eq!(out, b"BASE:1l:Observation::Time:us 486 431\n");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The name must match this.
    pub name: Option<Regex>,
    /// One of the labels must match this.
    pub label: Option<Regex>,
    /// The quantities that become series of their own ([`Series::select`]); none if the series stay whole.
    pub quantities: Vec<String>,
    /// The observations that stay; all if `None`.
    pub ranges: Option<Ranges>,
}

/// Ranges of observations, counted from 1: `1-201,300-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges(Vec<RangeInclusive<usize>>);

/// The text has no valid ranges.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{part:?} in {text:?} is no range of observations; write 5, 1-200, 300- or -10, from 1 and upwards, with commas between"
)]
pub struct RangesError {
    /// The whole text.
    text: String,
    /// The invalid part.
    part: String,
}

impl Filter {
    /// The series that remain of `entry`.
    #[must_use]
    pub fn apply(&self, entry: Entry) -> Vec<Entry> {
        let (name, labels) = match &entry {
            Entry::Series(series) => (&series.name, &series.labels),
            Entry::Summary(summary) => (&summary.name, &summary.labels),
        };
        let named = self.name.as_ref().is_none_or(|pattern| pattern.is_match(name));
        let labelled = |pattern: &Regex| labels.iter().any(|label| pattern.is_match(label));
        if !named || !self.label.as_ref().is_none_or(labelled) {
            return Vec::new();
        }
        match entry {
            Entry::Series(series) if self.quantities.is_empty() => {
                vec![Entry::Series(self.in_ranges(series))]
            }
            // The cut comes first: the ranges count all observations, and selecting a column may drop some.
            Entry::Series(series) => {
                let series = self.in_ranges(series);
                let chosen = self.quantities.iter().filter_map(|quantity| series.select(quantity));
                chosen.map(Entry::Series).collect()
            }
            Entry::Summary(summary) => {
                let selected = self.quantities.is_empty() || self.quantities.contains(&summary.quantity);
                selected.then_some(Entry::Summary(summary)).into_iter().collect()
            }
        }
    }

    fn in_ranges(&self, mut series: Series) -> Series {
        if let Some(ranges) = &self.ranges {
            let mut number = 0;
            series.observations.retain(|_| {
                number += 1;
                ranges.contains(number)
            });
        }
        series
    }
}

impl Ranges {
    /// True if one of the ranges contains observation `number`, counted from 1.
    #[must_use]
    pub fn contains(&self, number: usize) -> bool {
        // Ranges are sorted and disjoint: only the last range that begins at or before `number` can hold it.
        let begun = self.0.partition_point(|range| *range.start() <= number);
        begun > 0 && self.0[begun - 1].contains(&number)
    }
}

impl FromStr for Ranges {
    type Err = RangesError;

    fn from_str(text: &str) -> Result<Self, RangesError> {
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let wrong = || RangesError { text: text.to_owned(), part: part.to_owned() };
            let number = |digits: &str| {
                let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                digits.parse::<usize>().ok().filter(|number| valid && *number > 0).ok_or_else(wrong)
            };
            let range = match part.split_once('-') {
                None => number(part)?..=number(part)?,
                Some(("", last)) => 1..=number(last)?,
                Some((first, "")) => number(first)?..=usize::MAX,
                Some((first, last)) => number(first)?..=number(last)?,
            };
            if range.is_empty() {
                return Err(wrong());
            }
            ranges.push(range);
        }
        ranges.sort_by_key(|range| *range.start());
        let mut apart: Vec<RangeInclusive<usize>> = Vec::new();
        for range in ranges {
            match apart.last_mut() {
                Some(before) if range.start() <= before.end() => {
                    *before = *before.start()..=*before.end().max(range.end());
                }
                _ => apart.push(range),
            }
        }
        Ok(Self(apart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Observation;
    use crate::line::{OnError, Reader, write_entry};
    use proptest::prelude::*;

    fn run(filter: &Filter, text: &str) -> String {
        let mut out = Vec::new();
        for entry in Reader::new(text.as_bytes(), OnError::Refuse) {
            for entry in filter.apply(entry.unwrap()) {
                write_entry(&mut out, &entry).unwrap();
            }
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn all_columns_are_cut_alike() {
        let text = "X:1l:Observation::Time:ns 10 20 30 40\n\
                    X:with:Observation::Start:ns 1 2 3 4\n\
                    X:with:Observation::Cpu:ns 9 - 29 39\n\
                    X:with:Mark::Mark:ns 1,2,minor\n";
        let mut filter = Filter { ranges: "2,4-".parse().ok(), ..Filter::default() };
        let cut = run(&filter, text);
        assert_eq!(
            cut,
            "X:1l:Observation::Time:ns 20 40\n\
             X:with:Observation::Start:ns 2 4\n\
             X:with:Observation::Cpu:ns - 39\n\
             X:with:Mark::Mark:ns 1,2,minor\n"
        );
        // The observation without processor time is dropped after the cut, so 2 and 4 are still the second
        // and fourth.
        filter.quantities = ["Cpu", "Steal"].map(str::to_owned).into();
        let cpu = run(&filter, text);
        assert!(cpu.starts_with("X:1l:Observation::Cpu:ns 39\nX:with:Observation::Start:ns 4\n"), "{cpu}");
    }

    #[test]
    fn summaries_are_selected_and_not_cut() {
        let text = "X:summary:Sample::Time:us 2 1 1 1 0\n";
        let filter = |quantity: &str| Filter {
            quantities: vec![quantity.to_owned()],
            ranges: "7".parse().ok(),
            ..Filter::default()
        };
        assert_eq!((run(&filter("Time"), text), run(&filter("Cpu"), text)), (text.to_owned(), String::new()));
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for text in ["", "0", "0-5", "5-4", "a", "1-2-3", "1,,2", "+1", " 1", "-", "99999999999999999999"] {
            let error = text.parse::<Ranges>().unwrap_err().to_string();
            assert!(error.contains("is no range"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn ranges_contain_their_numbers(
            parts in prop::collection::vec((1usize..40, 0usize..10, 0u8..4), 1..8),
            number in 1usize..60,
        ) {
            let (mut text, mut expected) = (Vec::new(), false);
            for (first, length, kind) in parts {
                let last = first + length;
                let (part, holds) = match kind {
                    0 => (format!("{first}"), number == first),
                    1 => (format!("{first}-{last}"), (first..=last).contains(&number)),
                    2 => (format!("{first}-"), number >= first),
                    _ => (format!("-{last}"), number <= last),
                };
                text.push(part);
                expected |= holds;
            }
            let text = text.join(",");
            prop_assert_eq!(text.parse::<Ranges>().unwrap().contains(number), expected, "{} in {}", number, text);
        }

        #[test]
        fn cut_keeps_the_numbers_in_ranges(n in 0usize..50, first in 1usize..50, length in 0usize..50) {
            let row = |value: usize| Observation { wall_ns: value as f64, ..Observation::default() };
            let series = Series { observations: (1..=n).map(row).collect(), ..Series::default() };
            let ranges: Ranges = format!("{first}-{}", first + length).parse().unwrap();
            let Some(Entry::Series(cut)) = Filter { ranges: Some(ranges), ..Filter::default() }.apply(Entry::Series(series)).pop() else {
                return Err(TestCaseError::fail("a series stays a series"));
            };
            let expected: Vec<f64> = (first..=n.min(first + length)).map(|value| value as f64).collect();
            prop_assert_eq!(cut.walls(), expected);
        }
    }
}
