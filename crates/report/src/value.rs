//! The cells of tables, with a text form for people and a JSON value for programs.

use serde::ser::{Serialize, SerializeMap, Serializer};
use vellum_measure::{Interval, short};

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Words.
    Text(String),
    /// Words as a heading for the rows below.
    Heading(String),
    /// A figure.
    Number(f64),
    /// A count.
    Count(usize),
    /// A figure that is printed with its sign and a percent sign.
    Percent(f64),
    /// A share or change in percent, with its interval.
    PercentRange(Interval),
    /// A ratio with its interval.
    Ratio(Interval),
    /// No figure was published or measured.
    Nothing,
}

impl Value {
    /// The number, or [`Value::Nothing`].
    #[must_use]
    pub fn of(number: Option<f64>) -> Self {
        number.filter(|number| number.is_finite()).map_or(Self::Nothing, Self::Number)
    }

    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The ratio, or [`Value::Nothing`].
    #[must_use]
    pub fn ratio(interval: Option<Interval>) -> Self {
        interval.map_or(Self::Nothing, Self::Ratio)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) | Self::Heading(text) => f.write_str(text),
            Self::Number(number) => f.write_str(&short(*number)),
            Self::Count(count) => count.fmt(f),
            Self::Percent(number) => write!(f, "{number:+.2} %"),
            Self::PercentRange(i) => write!(f, "{:+.2} % [{:+.2}, {:+.2}]", i.estimate, i.low, i.high),
            Self::Ratio(i) => write!(f, "{} [{}, {}]", short(i.estimate), short(i.low), short(i.high)),
            Self::Nothing => f.write_str("-"),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) | Self::Heading(text) => to.serialize_str(text),
            Self::Number(number) | Self::Percent(number) => to.serialize_f64(*number),
            Self::Count(count) => to.serialize_u64(*count as u64),
            Self::PercentRange(i) | Self::Ratio(i) => {
                let mut map = to.serialize_map(Some(3))?;
                map.serialize_entry("estimate", &i.estimate)?;
                map.serialize_entry("low", &i.low)?;
                map.serialize_entry("high", &i.high)?;
                map.end()
            }
            Self::Nothing => to.serialize_none(),
        }
    }
}
