//! Amounts that are parts of a whole at one moment; their sum is checked when they are built.
//!
//! Invariants:
//! - The parts add up to the whole: if their sum is less, the rest is a part named "other".
//! - Parts that exceed the whole by more than 2 % are a bug of the caller. A debug build panics; a release
//!   build shows the excess beside the parts, because contradictory figures must not look right.

use super::{Figure, Row};
use crate::Table;
use std::borrow::Cow;

/// One divided by this is the largest excess of readings of one moment.
const EXCESS_PART: u64 = 50;
const OTHER: &str = "other";

/// The moment to which parts belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The moment when the whole was largest.
    Peak,
    /// The end of the program.
    End,
    /// The time of the report, if the program still runs.
    Now,
}

impl Moment {
    /// The moment in words.
    pub fn words(self) -> &'static str {
        match self {
            Moment::Peak => "at peak",
            Moment::End => "at the end",
            Moment::Now => "now",
        }
    }
}

/// A whole and its parts.
#[derive(Clone, Debug)]
pub struct Parts {
    unit: fn(u64) -> Figure,
    moment: Moment,
    whole: u64,
    parts: Vec<(Cow<'static, str>, u64)>,
    excess: Option<String>,
}

impl Parts {
    /// The parts of `whole`, in a unit such as [`Figure::Bytes`].
    pub fn new(
        unit: fn(u64) -> Figure,
        moment: Moment,
        whole: u64,
        parts: impl IntoIterator<Item = (&'static str, u64)>,
    ) -> Parts {
        let parts = Parts::of(unit, moment, whole, parts.into_iter().map(|(name, part)| (name.into(), part)));
        debug_assert!(parts.excess.is_none(), "{:?}", parts.excess());
        parts
    }

    fn of(
        unit: fn(u64) -> Figure,
        moment: Moment,
        whole: u64,
        parts: impl Iterator<Item = (Cow<'static, str>, u64)>,
    ) -> Parts {
        let mut parts: Vec<_> = parts.filter(|(_, part)| *part > 0).collect();
        let sum = parts.iter().fold(0u64, |sum, (_, part)| sum.saturating_add(*part));
        let excess = sum.saturating_sub(whole);
        let excess = (excess > whole / EXCESS_PART).then(|| {
            let (when, whole, excess) = (moment.words(), unit(whole), unit(excess));
            format!("the parts {when} exceed the whole, {whole}, by {excess}")
        });
        if sum < whole {
            parts.push((OTHER.into(), whole - sum));
        }
        Parts { unit, moment, whole, parts, excess }
    }

    /// The parts with a name for the rest, if the caller has one.
    #[must_use]
    pub fn rest_is(mut self, name: &'static str) -> Parts {
        if let Some((last, _)) = self.parts.last_mut().filter(|(last, _)| last == OTHER) {
            *last = name.into();
        }
        self
    }

    /// The excess of the parts over their whole in words, if there is any.
    pub fn excess(&self) -> Option<&str> {
        self.excess.as_deref()
    }

    /// The parts in one row, labelled with the moment.
    pub fn row(&self) -> Row {
        let row = Row::new(self.moment.words());
        self.parts.iter().fold(row, |row, (name, part)| row.amount((self.unit)(*part), name.clone()))
    }

    /// The parts as a table: each with its share, and the whole. `what` is the head over the names.
    pub fn table(&self, what: &str, more: &str) -> Table {
        let mut table =
            Table::plain(&[&format!("{what} {}{more}", self.moment.words()), "bytes", "share"], 1);
        let whole = ("in all".into(), self.whole);
        for (name, part) in self.parts.iter().chain([&whole]) {
            let share = format!("{:.1} %", *part as f64 / self.whole.max(1) as f64 * 100.0);
            table.row(vec![name.to_string(), (self.unit)(*part).to_string(), share]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn() -> impl Strategy<Value = (u64, Vec<u64>)> {
        let size = prop_oneof![0..10u64, 0..1u64 << 40, Just(u64::MAX)];
        (size.clone(), prop::collection::vec(size, 0..6))
    }

    fn of(whole: u64, parts: &[u64]) -> Parts {
        Parts::of(Figure::Bytes, Moment::Peak, whole, parts.iter().map(|part| ("a part".into(), *part)))
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole_or_show_an_excess((whole, parts) in drawn()) {
            let found = of(whole, &parts);
            let given: u128 = parts.iter().map(|part| u128::from(*part)).sum();
            let sum: u128 = found.parts.iter().map(|(_, part)| u128::from(*part)).sum();
            prop_assert_eq!(sum, given.max(u128::from(whole)));
            let within = sum.min(u64::MAX.into()) <= u128::from(whole) + u128::from(whole / EXCESS_PART);
            prop_assert_eq!(found.excess.is_none(), within);
            prop_assert!(found.parts.iter().all(|(_, part)| *part > 0));
            prop_assert_eq!(found.parts.iter().any(|(name, _)| name == OTHER), given < u128::from(whole));
        }
    }

    #[test]
    fn the_rest_has_a_name_and_an_excess_has_words() {
        let parts = of(100, &[60]).rest_is("between samples");
        assert_eq!(parts.row().cells(), ["60 B a part", "40 B between samples"]);
        assert_eq!(of(100, &[102]).excess(), None);
        let words = "the parts at peak exceed the whole, 100 B, by 10 B";
        assert_eq!(of(100, &[60, 50]).excess(), Some(words));
        let names = of(100, &[100]).rest_is("none").parts;
        assert_eq!(names, [("a part".into(), 100)]);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "exceed the whole")]
    fn a_debug_build_stops_at_an_excess() {
        Parts::new(Figure::Bytes, Moment::Peak, 100, [("a part", 110)]);
    }
}
