//! The header: the first word of a line, which describes the other words.
//!
//! ```text
//! BASE:1l:Observation:arm=A,tsc:Time:ns
//! name shape  kind     labels  quantity unit
//! ```
//!
//! Shape and kind together determine the role of the words behind the header, and so how they are read. For
//! values, the shape is only a hint for plots: `1l` means a line, `1d` dots, `1h` a histogram.
//!
//! In a header of five fields the quantity is missing; it then follows from the unit.
//!
//! Source: Bates 1999 prints `BASE:1l:Observation::Time:us`, `GCSCHED:1d:Observation:n:Time:us` and
//! `BASE:summary:Sample:n:Time:us` without describing the fields. The third and fourth field look like the
//! quantity and unit of one axis, the fifth and sixth like those of another. The first axis counts
//! observations, so it needs no unit. The fourth field therefore holds labels here, and the `n` of his lines
//! is read as a label.

use std::fmt;

use super::error::{LineError, Place, Problem, shown};
use super::escape::{self, Escaped};
use crate::{Series, Unit};

/// The role of the words of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Values, which begin a series.
    Values,
    /// The five figures of a sample.
    Summary,
    /// A column of the series before.
    Column,
    /// Marks of the series before.
    Marks,
    /// Other facts about the series before.
    About,
}

/// The first word of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    /// The name of the series.
    pub(super) name: String,
    /// The role of the other words.
    pub(super) role: Role,
    /// The circumstances of the measurement.
    pub(super) labels: Vec<String>,
    /// The quantity of the values.
    pub(super) quantity: String,
    /// Their unit.
    pub(super) unit: Unit,
}

/// Each role as shape and kind.
const ROLES: [(&str, &str, Role); 7] = [
    ("1l", "Observation", Role::Values),
    ("1d", "Observation", Role::Values),
    ("1h", "Observation", Role::Values),
    ("summary", "Sample", Role::Summary),
    ("with", "Observation", Role::Column),
    ("with", "Mark", Role::Marks),
    ("with", "Meta", Role::About),
];

impl Header {
    /// Reads `word`, the first of the line at `place`.
    pub(super) fn parse(word: &str, place: Place) -> Result<Self, LineError> {
        let mut fields = [""; 6];
        let count = word.split(':').count();
        if !(5..=6).contains(&count) {
            return Err(place.error(Problem::Fields { found: shown(word), fields: count }));
        }
        fields.iter_mut().zip(word.split(':')).for_each(|(slot, field)| *slot = field);
        let [name, shape, kind, labels, quantity, unit] = fields;
        // Fields are slices of the word, so their addresses give their columns.
        let offset_of = |part: &str| part.as_ptr() as usize - word.as_ptr() as usize;
        let text = |field| escape::text(place, (place.column + offset_of(field), field));

        let known = ROLES.iter().find(|(s, k, _)| (*s, *k) == (shape, kind));
        let unknown = || {
            let found = shown(&format!("{shape}:{kind}"));
            place.error_at(place.column + offset_of(shape), Problem::Role(found))
        };
        let role = known.ok_or_else(unknown)?.2;
        let mut header = Self {
            name: text(name)?,
            role,
            labels: Vec::new(),
            quantity: text(quantity)?,
            unit: Unit::parse(&if count == 5 { text(quantity) } else { text(unit) }?),
        };
        if count == 5 {
            header.quantity = usual_quantity(&header.unit).to_owned();
        }
        let mut parts: Vec<&str> = labels.split(',').collect();
        // A last empty part is only the end: no labels and one empty label are different.
        parts.pop_if(|last| last.is_empty());
        header.labels = parts.into_iter().map(text).collect::<Result<_, _>>()?;
        Ok(header)
    }
}

/// The quantity of values in `unit`, if the header has none.
fn usual_quantity(unit: &Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds | Unit::Microseconds | Unit::Milliseconds | Unit::Seconds | Unit::Cycles => {
            Series::TIME
        }
        Unit::Bytes => "Size",
        Unit::Count => "Count",
        Unit::Instructions => "Instructions",
        Unit::Other(_) => "Value",
    }
}

/// The six fields, escaped, without the space behind them.
impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Escaped(&self.name))?;
        for (shape, kind, _) in ROLES.iter().filter(|(_, _, role)| *role == self.role).take(1) {
            write!(f, ":{shape}:{kind}:")?;
        }
        for (index, label) in self.labels.iter().enumerate() {
            write!(f, "{}{}", if index > 0 { "," } else { "" }, Escaped(label))?;
        }
        let end = if self.labels.last().is_some_and(String::is_empty) { "," } else { "" };
        write!(f, "{end}:{}:{}", Escaped(&self.quantity), Escaped(self.unit.symbol()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(word: &str) -> Result<Header, LineError> {
        Header::parse(word, Place { line: 7, column: 3 })
    }

    #[test]
    fn five_fields_leave_the_quantity_to_the_unit() {
        for (unit, quantity) in
            [("us", "Time"), ("cycles", "Time"), ("B", "Size"), ("n", "Count"), ("°C", "Value")]
        {
            let header = parse(&format!("X:1l:Observation:a,b:{unit}")).unwrap();
            assert_eq!((header.quantity.as_str(), header.unit.symbol()), (quantity, unit));
            assert_eq!(header.labels, ["a", "b"]);
        }
    }

    #[test]
    fn long_words_are_cut_in_messages() {
        let error = parse(&"é".repeat(500)).unwrap_err().to_string();
        assert!(error.len() < 250, "{error}");
    }
}
