//! Tables: printed for people, and objects with named fields for machines.

use serde::ser::{Serialize, SerializeMap, Serializer};
use vellum_measure::{Interval, short};

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name in JSON, which ends in the unit.
    pub key: String,
    /// What is printed above it.
    pub head: String,
}

/// What stands in a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Words.
    Text(String),
    /// A figure.
    Number(f64),
    /// How many.
    Count(usize),
    /// A figure that is printed with its sign and a percent sign.
    Percent(f64),
    /// A share or change in percent, with how far it could be off.
    PercentRange(Interval),
    /// A ratio with how far it could be off.
    Ratio(Interval),
    /// Nothing was published or measured.
    Nothing,
}

impl Value {
    /// The number, or nothing.
    #[must_use]
    pub fn of(number: Option<f64>) -> Self {
        number.filter(|number| number.is_finite()).map_or(Self::Nothing, Self::Number)
    }

    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The ratio, or nothing.
    #[must_use]
    pub fn ratio(interval: Option<Interval>) -> Self {
        interval.map_or(Self::Nothing, Self::Ratio)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
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
            Self::Text(text) => to.serialize_str(text),
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

/// A number of bytes that is a round number of KiB, MiB or GiB.
#[must_use]
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 30 && b.is_multiple_of(1 << 30) => format!("{} GiB", b >> 30),
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a value for every column.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// A table without rows; columns as (key, head).
    #[must_use]
    pub fn new(title: &str, columns: &[(&str, &str)]) -> Self {
        let column = |(key, head): &(&str, &str)| Column { key: (*key).to_owned(), head: (*head).to_owned() };
        Self { title: title.to_owned(), columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }

    /// The table as text, ending in a newline. Heads wrap at `|`.
    #[must_use]
    pub fn text(&self) -> String {
        let heads: Vec<Vec<&str>> =
            self.columns.iter().map(|column| column.head.split('|').collect()).collect();
        let depth = heads.iter().map(Vec::len).max().unwrap_or(0);
        let above = (0..depth).map(|line| {
            // Heads stand on the line nearest to the rows.
            let of = |head: &Vec<&str>| {
                (line + head.len()).checked_sub(depth).map_or("", |at| head[at]).to_owned()
            };
            heads.iter().map(of).collect::<Vec<_>>()
        });
        let rows = self.rows.iter().map(|row| row.iter().map(ToString::to_string).collect());
        let lines: Vec<Vec<String>> = above.chain(rows).collect();
        let width = |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|v| v.chars().count()).max();
        let widths: Vec<usize> = (0..self.columns.len()).map(|at| width(at).unwrap_or(0)).collect();
        // Names read from the left, figures line up at the right.
        let left =
            |at: usize| at == 0 || self.rows.iter().any(|row| matches!(row.get(at), Some(Value::Text(_))));
        let mut out = format!("{}\n", self.title);
        for line in &lines {
            let mut text = String::from(" ");
            for (at, value) in line.iter().enumerate() {
                let wide = widths[at];
                text += &if left(at) { format!(" {value:<wide$} ") } else { format!(" {value:>wide$} ") };
            }
            out += text.trim_end();
            out.push('\n');
        }
        out
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let row = |row: &Vec<Value>| {
            let fields = self.columns.iter().zip(row);
            let value = |value: &Value| serde_json::to_value(value).unwrap_or_default();
            fields.map(|(column, v)| (column.key.clone(), value(v))).collect::<serde_json::Map<_, _>>()
        };
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("title", &self.title)?;
        map.serialize_entry("rows", &self.rows.iter().map(row).collect::<Vec<_>>())?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table =
            Table::new("Title", &[("size_bytes", "size"), ("cost_cycles", "cost|(cycles)"), ("told", "")]);
        table.rows.push(vec![Value::text("4 KiB"), Value::Number(1234.4), Value::Nothing]);
        let interval = Interval { estimate: 1.5, low: 1.0, high: 2.0 };
        table.rows.push(vec![Value::text("1 MiB"), Value::Ratio(interval), Value::text("well")]);
        table
    }

    #[test]
    fn text_lines_up() {
        let text = sample().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Title");
        assert!(lines[1].trim() == "cost" && lines[2].trim_start().starts_with("size"), "{text}");
        let ends = |line: &str, what: &str| line.find(what).map(|at| at + what.len());
        assert_eq!(ends(lines[3], "1234"), ends(lines[4], "1.50 [1.00, 2.00]"), "{text}");
    }

    #[test]
    fn json_has_named_fields() {
        let value = serde_json::to_value(sample()).unwrap();
        assert_eq!(value["rows"][0]["cost_cycles"], 1234.4);
        assert_eq!(value["rows"][0]["told"], serde_json::Value::Null);
        assert_eq!(value["rows"][1]["cost_cycles"]["low"], 1.0);
    }

    #[test]
    fn sizes_are_short() {
        let sizes =
            [(12, "12 B"), (4096, "4 KiB"), (3 << 20, "3 MiB"), (1 << 30, "1 GiB"), (1536 << 10, "1536 KiB")];
        sizes.iter().for_each(|(bytes, text)| assert_eq!(size(*bytes), *text));
    }
}
