//! Series as JSON, schema `vellum.observations/1`.
//!
//! ```json
//! {"schema": "vellum.observations/1", "series": [
//!   {"name": "BASE", "labels": ["tsc"], "quantity": "Time", "unit": "ns", "batch": 1,
//!    "observations": {"value": [486, 402], "start_ns": [1200, 1900], "cpu_ns": [480, null]},
//!    "marks": [{"start_ns": 1250, "end_ns": 1300, "cause": "minor"}]}]}
//! ```
//!
//! Observations are stored as columns: one array for each quantity. Columns take a quarter of the space that
//! an object for each observation would need, and plotting libraries accept columns directly. Columns with
//! nothing but zeros or missing values are left out. `value` is the wall time (base included) in the series'
//! unit; the other columns have the names of the fields of [`Observation`].
//!
//! [`Series`] serializes to the same structure in every serde format, so that other documents can contain a
//! series.
//!
//! Invariants: series are [valid](Series::validate) when written and when read; numbers are read back bit
//! for bit. Unknown keys are ignored, so that later versions of this schema may add keys.

use std::io::{self, Read, Write};

use serde::ser::{Error as _, SerializeStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::column::Field;
use crate::{Column, Observation, Series, SeriesError};

/// The schema that is written and read.
pub const SCHEMA: &str = "vellum.observations/1";

/// Why series could not be written as JSON, or read from it.
#[derive(Debug, Error)]
pub enum JsonError {
    /// The input or output failed.
    #[error("observations as JSON: {0}")]
    Io(#[from] io::Error),
    /// The text is not JSON, or has no series.
    #[error("these are not observations in JSON ({})", wrong(.0))]
    Invalid(#[from] serde_json::Error),
    /// The document has another schema.
    #[error("the document's schema is {0:?}, not {SCHEMA:?}; was it written by another program or version?")]
    Schema(String),
    /// A series is invalid.
    #[error(transparent)]
    Series(#[from] SeriesError),
}

/// Writes a document of `series`, one a line, without storing them.
///
/// # Errors
/// If the output fails, or at a series that is not [valid](Series::validate): the document then lacks its
/// end.
pub fn write<'a>(
    out: &mut impl Write,
    series: impl IntoIterator<Item = &'a Series>,
) -> Result<(), JsonError> {
    write!(out, "{{\"schema\":\"{SCHEMA}\",\"series\":[")?;
    for (index, series) in series.into_iter().enumerate() {
        series.validate()?;
        out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, series).map_err(|error| match error.io_error_kind() {
            Some(kind) => JsonError::Io(kind.into()),
            None => JsonError::Invalid(error),
        })?;
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}

/// The error text: one of our checks, or else the place.
fn wrong(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.starts_with("series") {
        return text;
    }
    format!("line {}, column {}", error.line(), error.column())
}

/// Reads a document.
///
/// # Errors
/// If the input fails, is not JSON, is of another schema, or has an invalid series.
pub fn read(mut input: impl Read) -> Result<Vec<Series>, JsonError> {
    #[derive(Deserialize)]
    struct Named {
        schema: String,
    }
    #[derive(Deserialize)]
    struct Document {
        series: Vec<Series>,
    }
    let mut text = String::new();
    input.read_to_string(&mut text)?;
    // The schema is read first, so that a document of another schema is reported as such and not as faulty.
    let Named { schema } = serde_json::from_str(&text)?;
    if schema != SCHEMA {
        return Err(JsonError::Schema(schema));
    }
    let Document { series } = serde_json::from_str(&text)?;
    Ok(series)
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.validate().map_err(S::Error::custom)?;
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Series {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let series = Self::deserialize(deserializer)?;
        series.validate().map_err(de::Error::custom)?;
        Ok(series)
    }
}

/// The batch of a series without one.
pub(crate) fn one() -> u64 {
    1
}

/// Writes observations as an object of columns.
pub(crate) fn columns<S: Serializer>(rows: &[Observation], to: S) -> Result<S::Ok, S::Error> {
    let mut out = to.serialize_struct("Observations", 1 + Column::ALL.len())?;
    out.serialize_field("value", &Each(rows, |one| &mut one.wall_ns))?;
    for column in Column::ALL.into_iter().filter(|column| column.is_recorded(rows)) {
        match column.facts() {
            (_, key, Field::Start(of)) => out.serialize_field(key, &Each(rows, of))?,
            (_, key, Field::Time(of)) => out.serialize_field(key, &Each(rows, of))?,
            (_, key, Field::Count(of)) => out.serialize_field(key, &Each(rows, of))?,
        }
    }
    out.end()
}

/// Reads them from such an object.
pub(crate) fn rows<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Observation>, D::Error> {
    ColumnsIn::deserialize(from)?.rows().map_err(|error| de::Error::custom(format!("series: {error}")))
}

/// One field of all observations, without a list of its own.
struct Each<'a, T>(&'a [Observation], fn(&mut Observation) -> &mut T);

impl<T: Serialize + Copy> Serialize for Each<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = |one: &Observation| *self.1(&mut { *one });
        serializer.collect_seq(self.0.iter().map(of))
    }
}

#[derive(Deserialize)]
struct ColumnsIn {
    value: Vec<f64>,
    start_ns: Option<Vec<u64>>,
    cpu_ns: Option<Vec<Option<f64>>>,
    minor: Option<Vec<u32>>,
    major: Option<Vec<u32>>,
    voluntary: Option<Vec<u32>>,
    involuntary: Option<Vec<u32>>,
    steal_ns: Option<Vec<Option<f64>>>,
}

impl ColumnsIn {
    /// One observation a row, or an error that names the column whose length differs from the length of
    /// `value`.
    fn rows(self) -> Result<Vec<Observation>, String> {
        fn fill<T>(
            rows: &mut [Observation],
            name: &str,
            column: Option<Vec<T>>,
            put: impl Fn(&mut Observation, T),
        ) -> Result<(), String> {
            let Some(column) = column else { return Ok(()) };
            if column.len() != rows.len() {
                return Err(format!("{name} has {} entries for {} of value", column.len(), rows.len()));
            }
            rows.iter_mut().zip(column).for_each(|(row, cell)| put(row, cell));
            Ok(())
        }
        let row = |wall_ns| Observation { wall_ns, ..Observation::default() };
        let mut rows: Vec<Observation> = self.value.into_iter().map(row).collect();
        fill(&mut rows, "start_ns", self.start_ns, |row, ns| row.start_ns = ns)?;
        fill(&mut rows, "cpu_ns", self.cpu_ns, |row, ns| row.cpu_ns = ns)?;
        fill(&mut rows, "minor", self.minor, |row, n| row.minor = n)?;
        fill(&mut rows, "major", self.major, |row, n| row.major = n)?;
        fill(&mut rows, "voluntary", self.voluntary, |row, n| row.voluntary = n)?;
        fill(&mut rows, "involuntary", self.involuntary, |row, n| row.involuntary = n)?;
        fill(&mut rows, "steal_ns", self.steal_ns, |row, ns| row.steal_ns = ns)?;
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;
    use serde_json::{Value, json};

    fn document(series: Value) -> String {
        json!({"schema": SCHEMA, "series": [series]}).to_string()
    }

    #[test]
    fn the_document_is_as_described() {
        let observation = |wall_ns, cpu_ns| Observation { wall_ns, cpu_ns, ..Observation::default() };
        let series = Series {
            labels: vec!["tsc".into()],
            observations: vec![observation(486.0, Some(480.5)), observation(402.0, None)],
            ..Series::plain("BASE", "Time", Unit::Nanoseconds, [])
        };
        let mut out = Vec::new();
        write(&mut out, [&series, &Series::default()]).unwrap();
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["schema"], SCHEMA);
        assert_eq!(
            value["series"][0],
            json!({
                "name": "BASE", "labels": ["tsc"], "quantity": "Time", "unit": "ns", "batch": 1,
                "observations": {"value": [486.0, 402.0], "cpu_ns": [480.5, null]}, "marks": [],
            })
        );
        assert_eq!(read(out.as_slice()).unwrap(), [series, Series::default()]);
    }

    #[test]
    fn few_keys_are_needed() {
        let text = document(
            json!({"name": "X", "quantity": "Time", "unit": "us", "observations": {"value": [1, 2.5]},
            "remark": "passed over"}),
        );
        let series = read(text.as_bytes()).unwrap();
        assert_eq!(series, [Series::plain("X", "Time", Unit::Microseconds, [1.0, 2.5])]);
    }

    #[test]
    fn errors_name_the_problem() {
        let series = |observations: Value, more: Value| {
            let mut series =
                json!({"name": "X", "quantity": "Time", "unit": "us", "observations": observations});
            series.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            document(series)
        };
        let value = json!({"value": [1, 2]});
        let backwards = json!({"marks": [{"start_ns": 2, "end_ns": 1, "cause": "major"}]});
        for (text, message) in [
            ("{".to_owned(), "(line 1, column 1)"),
            (json!({"schema": "vellum.run/1", "series": 3}).to_string(), "schema is \"vellum.run/1\""),
            (series(json!({"value": [1, null]}), json!({})), "these are not observations in JSON (line 1"),
            (series(json!({"value": [1], "minor": [1, 2]}), json!({})), "minor has 2 entries for 1 of value"),
            (series(json!({"value": [1], "minor": [-1]}), json!({})), "these are not observations in JSON"),
            (series(value.clone(), json!({"batch": 0})), "series X: its batch is 0"),
            (series(value, backwards), "mark 1 ends at 1 ns"),
        ] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn nan_is_not_written() {
        let series = Series::plain("X", "Time", Unit::Nanoseconds, [1.0, f64::NAN]);
        let error = write(&mut Vec::new(), [&series]).unwrap_err();
        assert!(matches!(error, JsonError::Series(SeriesError::NotFinite { observation: 2, .. })));
        assert!(serde_json::to_string(&series).is_err());
    }
}
