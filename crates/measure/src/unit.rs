//! Units of quantities, and values with units as text for people.
//!
//! Values stay in the unit in which they were measured; only printing scales them. Files stay exact, and
//! tables readable: `2.13 µs`, `807 ns`, `8.61 ms`, `12.3 MiB`.
//!
//! Invariants:
//! - [`Unit::Other`] never holds the symbol of another variant, if [`Unit::parse`] made it.
//! - A scaled value has three significant figures, and changes unit before it would grow to four.
//!
//! Source: the annotated listing of `cost` in Bates 1999 has ns, µs and ms side by side with two decimals or
//! none. We print three figures everywhere: 133.81 µs is more precise than a clock of one microsecond.

use std::fmt;

use crate::digits::{figures, grouped};
use serde::{Deserialize, Serialize};

/// The unit of a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Unit {
    /// 10⁻⁹ seconds, written `ns`. All times recorded here have this unit.
    #[default]
    Nanoseconds,
    /// 10⁻⁶ seconds, written `us`.
    Microseconds,
    /// 10⁻³ seconds, written `ms`.
    Milliseconds,
    /// Seconds, written `s`.
    Seconds,
    /// Steps of a processor's counter, written `cycles`. Their length depends on the processor.
    Cycles,
    /// Bytes, written `B`.
    Bytes,
    /// A count, written `n`.
    Count,
    /// Machine instructions executed, written `instructions`.
    Instructions,
    /// Anything else, by its symbol; the empty symbol is a plain number.
    Other(String),
}

/// The divisor and symbol that show a value in a larger or smaller unit of the same kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale<'a> {
    /// Divide a value in the original unit by this.
    pub divisor: f64,
    /// The symbol after the number; empty for plain numbers.
    pub symbol: &'a str,
}

/// From this shown value on, the next larger unit is used: 999.5 would be rounded to four figures.
const NEXT_UNIT_FROM: f64 = 999.5;

/// Each unit with its length in nanoseconds, largest first.
const TIMES: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const SIZES: [(f64, &str); 5] = [
    ((1u64 << 40) as f64, "TiB"),
    ((1u64 << 30) as f64, "GiB"),
    ((1u64 << 20) as f64, "MiB"),
    ((1u64 << 10) as f64, "KiB"),
    (1.0, "B"),
];
/// Prefixes of counts of instructions; a column's title or a sentence names the unit.
const INSTRUCTIONS: [(f64, &str); 4] = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
const CYCLES: [(f64, &str); 4] = [(1e9, "Gcycles"), (1e6, "Mcycles"), (1e3, "kcycles"), (1.0, "cycles")];

/// The units with names: symbol, unit, and its length in nanoseconds if it is one of time.
const KNOWN: [(&str, Unit, Option<f64>); 8] = [
    ("ns", Unit::Nanoseconds, Some(1.0)),
    ("us", Unit::Microseconds, Some(1e3)),
    ("ms", Unit::Milliseconds, Some(1e6)),
    ("s", Unit::Seconds, Some(1e9)),
    ("cycles", Unit::Cycles, None),
    ("B", Unit::Bytes, None),
    ("n", Unit::Count, None),
    ("instructions", Unit::Instructions, None),
];

impl Unit {
    /// The unit with this symbol. Unknown symbols become [`Unit::Other`].
    #[must_use]
    pub fn parse(symbol: &str) -> Self {
        // Both signs for micro are in use.
        let ascii = if matches!(symbol, "µs" | "μs") { "us" } else { symbol };
        let known = KNOWN.iter().find(|(known, ..)| *known == ascii);
        known.map_or_else(|| Self::Other(symbol.to_owned()), |(_, unit, _)| unit.clone())
    }

    /// The ASCII symbol that [`Unit::parse`] reads.
    #[must_use]
    pub fn symbol(&self) -> &str {
        match self {
            Self::Other(symbol) => symbol,
            _ => self.known().map_or("", |(symbol, ..)| symbol),
        }
    }

    /// The length of a unit of time, in nanoseconds.
    #[must_use]
    pub fn nanoseconds(&self) -> Option<f64> {
        self.known()?.2
    }

    fn known(&self) -> Option<&'static (&'static str, Self, Option<f64>)> {
        KNOWN.iter().find(|(_, unit, _)| unit == self)
    }

    /// The scale that suits values as large as `magnitude` (in this unit), for one figure or a whole axis.
    ///
    /// The sign does not matter. For zero or NaN the scale is this unit itself.
    ///
    /// ```
    /// # use vellum_measure::Unit;
    /// let axis = Unit::Nanoseconds.scale(8_610_000.0);
    /// assert_eq!((axis.divisor, axis.symbol), (1e6, "ms"));
    /// ```
    #[must_use]
    pub fn scale(&self, magnitude: f64) -> Scale<'_> {
        let (ladder, one): (&'static [(f64, &'static str)], f64) = match self {
            Self::Bytes => (&SIZES, 1.0),
            Self::Cycles => (&CYCLES, 1.0),
            Self::Instructions => (&INSTRUCTIONS, 1.0),
            Self::Count => return Scale { divisor: 1.0, symbol: "" },
            Self::Other(symbol) => return Scale { divisor: 1.0, symbol },
            time => (&TIMES, time.nanoseconds().unwrap_or(1.0)),
        };
        let size = magnitude.abs() * one;
        if !size.is_finite() || size == 0.0 {
            let own = ladder.iter().find(|(step, _)| *step == one);
            return Scale { divisor: 1.0, symbol: own.map_or("", |(_, symbol)| symbol) };
        }
        // A value that would have four figures in the smaller unit is shown in the larger one. Between powers
        // of 1024 there is a gap: 0.98 MiB is easier to read than 1004 KiB. Whole bytes are shown as they
        // are.
        let smallest_size = |step| *self == Self::Bytes && step == 1.0;
        let limit = |step| if smallest_size(step) { 1024.0 } else { NEXT_UNIT_FROM };
        let fits = |pair: &[(f64, &'static str)]| size / pair[1].0 >= limit(pair[1].0);
        let found = ladder.windows(2).find(|pair| fits(pair)).map(|pair| pair[0]);
        let (step, symbol) = found.unwrap_or(ladder[ladder.len() - 1]);
        Scale { divisor: step / one, symbol }
    }

    /// `value` of this unit for people: three significant figures in the unit that suits its size.
    ///
    /// ```
    /// # use vellum_measure::Unit;
    /// assert_eq!(Unit::Nanoseconds.scaled(2130.0), "2.13 µs");
    /// assert_eq!(Unit::Nanoseconds.scaled(807.0), "807 ns");
    /// assert_eq!(Unit::Microseconds.scaled(8610.0), "8.61 ms");
    /// assert_eq!(Unit::Bytes.scaled(12.3 * 1_048_576.0), "12.3 MiB");
    /// assert_eq!(Unit::Count.scaled(1_234_567.0), "1,234,567");
    /// ```
    #[must_use]
    pub fn scaled(&self, value: f64) -> String {
        let Scale { divisor, symbol } = self.scale(value);
        let counted = matches!(self, Self::Cycles | Self::Bytes | Self::Count | Self::Instructions);
        let number = if counted && divisor == 1.0 && value.fract() == 0.0 {
            grouped(&format!("{value:.0}"))
        } else {
            figures(value / divisor)
        };
        if symbol.is_empty() { number } else { format!("{number} {symbol}") }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

impl From<String> for Unit {
    fn from(symbol: String) -> Self {
        Self::parse(&symbol)
    }
}

impl From<Unit> for String {
    fn from(unit: Unit) -> Self {
        unit.symbol().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_unit_changes_before_a_fourth_figure() {
        for (unit, value, text) in [
            (Unit::Nanoseconds, 999.4, "999 ns"),
            (Unit::Nanoseconds, 999.5, "1.00 µs"),
            (Unit::Nanoseconds, 0.25, "0.25 ns"),
            (Unit::Nanoseconds, 0.001_234, "0.00123 ns"),
            (Unit::Nanoseconds, -2_130.0, "-2.13 µs"),
            (Unit::Microseconds, 0.0, "0 µs"),
            (Unit::Seconds, 0.004, "4.00 ms"),
            (Unit::Seconds, 3_600.0, "3,600 s"),
            (Unit::Bytes, 1_004.0 * 1024.0, "0.98 MiB"),
            (Unit::Bytes, 512.0, "512 B"),
            (Unit::Bytes, 1023.0, "1,023 B"),
            (Unit::Bytes, 1024.0, "1.00 KiB"),
            (Unit::Bytes, 5e15, "4,547 TiB"),
            (Unit::Cycles, 26.0, "26 cycles"),
            (Unit::Cycles, 12_345.0, "12.3 kcycles"),
            (Unit::Instructions, 134_129.0, "134 k"),
            (Unit::Instructions, 50_124_217.0, "50.1 M"),
            (Unit::Instructions, 7.0, "7"),
            (Unit::Count, 0.5, "0.50"),
            (Unit::Count, 2.0, "2"),
            (Unit::Count, -1234.0, "-1,234"),
            (Unit::Count, 999_999.0, "999,999"),
            (Unit::Other("ops/s".into()), 1234.0, "1,234 ops/s"),
            (Unit::Other(String::new()), 1.5, "1.50"),
        ] {
            assert_eq!(unit.scaled(value), text, "{value} {unit}");
        }
        assert_eq!(Unit::Nanoseconds.scaled(f64::NAN), "NaN ns");
    }

    proptest! {
        #[test]
        fn printed_values_are_near_the_value(value in -1e12f64..1e12) {
            let text = Unit::Nanoseconds.scaled(value);
            let (number, symbol) = text.split_once(' ').unwrap();
            let step = TIMES.iter().find(|(_, s)| *s == symbol).unwrap().0;
            let shown = number.replace(',', "").parse::<f64>().unwrap() * step;
            // Three figures are at most 0.5 % off, or half of the last place for values below a nanosecond.
            prop_assert!((shown - value).abs() <= value.abs() * 0.0051 + 1e-12, "{value} as {text}");
        }
    }
}
