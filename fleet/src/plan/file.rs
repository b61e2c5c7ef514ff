//! Parquet files with a row for each container and hour, in flat columns that any engine can read.
//!
//! | column | type | contents |
//! | --- | --- | --- |
//! | `hour` | timestamp (ms, UTC) | the end of the hour |
//! | `node`, `owner`, `name` | string | the node; the owner; the container's name |
//! | `cpu_seconds`, `resident_bytes` | double | user CPU time in the hour; maximum resident memory |
//! | `window_1` to `window_12` | double, or null | lengths of windows, in seconds of user CPU time |
//! | `bytes_1` to `bytes_12` | double, or null | the working set: memory used within such a window |
//! | `faults_1` to `faults_12` | double, or null | page faults per second with only that much memory |
//!
//! Files are compressed by snappy, in groups of [`GROUP`] rows. Files of other programs may have more
//! columns, in any order, and may be uncompressed.
//!
//! Source: Apache Parquet, "File Format"; the library is `parquet` without Arrow.

use crate::Error;
use parquet::basic::Compression;
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The maximum number of points of a curve.
pub const POINTS: usize = 12;
/// The number of rows in a group, and in a piece that is read at once.
const GROUP: usize = 65_536;
const PIECE: usize = 8192;
/// The text columns before the curve.
const TEXTS: [&str; 3] = ["node", "owner", "name"];
const CURVE: [&str; 3] = ["window", "bytes", "faults"];

/// A container's values for one hour.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The end of the hour, in milliseconds since 1970.
    pub hour_ms: i64,
    /// The node.
    pub node: String,
    /// The owner.
    pub owner: String,
    /// The container's name, unique on its node.
    pub name: String,
    /// User CPU time in the hour.
    pub cpu_seconds: f64,
    /// The maximum of resident memory.
    pub resident_bytes: f64,
    /// Window in seconds, working set in bytes, and faults a second, from the smallest window on.
    pub curve: Vec<[f64; 3]>,
}

fn schema() -> String {
    let mut text = "message container_hours { required int64 hour (TIMESTAMP(MILLIS,true));".to_owned();
    TEXTS.iter().for_each(|name| text += &format!(" required binary {name} (STRING);"));
    text += " required double cpu_seconds; required double resident_bytes;";
    for kind in CURVE {
        (1..=POINTS).for_each(|point| text += &format!(" optional double {kind}_{point};"));
    }
    text + " }"
}

/// Writes container-hours, in groups of rows.
pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Vec<Row>,
}

impl<W: Write + Send> Writer<W> {
    /// A file without rows.
    ///
    /// # Errors
    /// [`ParquetError`] if nothing can be written.
    pub fn new(out: W) -> Result<Writer<W>, ParquetError> {
        let schema = Arc::new(parse_message_type(&schema())?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        Ok(Writer { file, rows: Vec::with_capacity(GROUP) })
    }

    /// Adds a row. Points beyond [`POINTS`] are left out.
    ///
    /// # Errors
    /// [`ParquetError`] if the row cannot be written.
    pub fn push(&mut self, row: Row) -> Result<(), ParquetError> {
        self.rows.push(row);
        if self.rows.len() == GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes the remaining rows and the end of the file.
    ///
    /// # Errors
    /// [`ParquetError`] if the file cannot be written.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        self.flush()?;
        self.file.into_inner()
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        let mut number = 0;
        while let Some(mut column) = group.next_column()? {
            match column.untyped() {
                ColumnWriter::Int64ColumnWriter(writer) => {
                    let hours: Vec<i64> = rows.iter().map(|row| row.hour_ms).collect();
                    writer.write_batch(&hours, None, None)?;
                }
                ColumnWriter::ByteArrayColumnWriter(writer) => {
                    let of = |row: &Row| [&row.node, &row.owner, &row.name][number - 1].as_str().into();
                    let texts: Vec<ByteArray> = rows.iter().map(of).collect();
                    writer.write_batch(&texts, None, None)?;
                }
                ColumnWriter::DoubleColumnWriter(writer) if number < FIXED => {
                    let of = |row: &Row| [row.cpu_seconds, row.resident_bytes][number - 1 - TEXTS.len()];
                    writer.write_batch(&rows.iter().map(of).collect::<Vec<_>>(), None, None)?;
                }
                ColumnWriter::DoubleColumnWriter(writer) => {
                    let (kind, point) = ((number - FIXED) / POINTS, (number - FIXED) % POINTS);
                    let of = |row: &Row| row.curve.get(point).map(|values| values[kind]);
                    let values: Vec<f64> = rows.iter().filter_map(of).collect();
                    let there: Vec<i16> = rows.iter().map(|row| i16::from(of(row).is_some())).collect();
                    writer.write_batch(&values, Some(&there), None)?;
                }
                _ => return Err(ParquetError::General("a column of another type".to_owned())),
            }
            column.close()?;
            number += 1;
        }
        group.close()?;
        self.rows = rows;
        self.rows.clear();
        Ok(())
    }
}

/// The number of columns before the curve.
const FIXED: usize = 1 + TEXTS.len() + 2;

/// Reads a file in pieces and passes each row to `row`; returns the number of rows.
///
/// # Errors
/// If the file cannot be read, or lacks columns.
pub fn read(path: &Path, mut row: impl FnMut(&Row)) -> Result<u64, Error> {
    let way_out = "give a file that `vellum plan export` wrote (uncompressed, or by snappy)";
    let file = File::open(path).map_err(|why| Error::of(path, why, way_out))?;
    pieces(file, &mut row).map_err(|why| Error::of(path, why, way_out))
}

fn pieces(file: File, each: &mut impl FnMut(&Row)) -> Result<u64, String> {
    let said = |why: ParquetError| why.to_string();
    let reader = SerializedFileReader::new(file).map_err(said)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let ours = parse_message_type(&self::schema()).map_err(said)?;
    let names: Vec<String> = ours.get_fields().iter().map(|column| column.name().to_owned()).collect();
    let place = |name: &String| {
        let found = schema.columns().iter().position(|column| column.path().string() == *name);
        found.ok_or_else(|| format!("there is no column {name}"))
    };
    let places = names.iter().map(place).collect::<Result<Vec<usize>, String>>()?;
    if let Some(nested) = places.iter().find(|place| schema.column(**place).max_rep_level() > 0) {
        return Err(format!("the column {} has lists", schema.column(*nested).name()));
    }
    let (mut count, mut rows) = (0, vec![Row::default(); PIECE]);
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(said)?;
        let columns = places.iter().map(|place| group.get_column_reader(*place));
        let mut columns = columns.collect::<Result<Vec<ColumnReader>, ParquetError>>().map_err(said)?;
        let mut left = usize::try_from(group.metadata().num_rows()).map_err(|why| why.to_string())?;
        let mut piece = Piece::default();
        while left > 0 {
            let wanted = left.min(PIECE);
            rows.iter_mut().for_each(|row| row.curve.clear());
            for (number, column) in columns.iter_mut().enumerate() {
                piece.fill(column, number, &names[number], &mut rows[..wanted])?;
            }
            rows[..wanted].iter().for_each(&mut *each);
            (left, count) = (left - wanted, count + wanted as u64);
        }
    }
    Ok(count)
}

/// Buffers for a piece of a column.
#[derive(Default)]
struct Piece {
    there: Vec<i16>,
    numbers: Vec<f64>,
    whole: Vec<i64>,
    texts: Vec<ByteArray>,
}

impl Piece {
    /// Stores a piece of a column in rows. A curve ends at the first missing value.
    fn fill(
        &mut self,
        column: &mut ColumnReader,
        number: usize,
        name: &str,
        rows: &mut [Row],
    ) -> Result<(), String> {
        self.there.clear();
        let there = Some(&mut self.there);
        let read = match column {
            ColumnReader::Int64ColumnReader(reader) if number == 0 => {
                self.whole.clear();
                reader.read_records(rows.len(), there, None, &mut self.whole)
            }
            ColumnReader::ByteArrayColumnReader(reader) if (1..=TEXTS.len()).contains(&number) => {
                self.texts.clear();
                reader.read_records(rows.len(), there, None, &mut self.texts)
            }
            ColumnReader::DoubleColumnReader(reader) if number > TEXTS.len() => {
                self.numbers.clear();
                reader.read_records(rows.len(), there, None, &mut self.numbers)
            }
            _ => return Err(format!("the column {name} has another type")),
        };
        let (records, values, _) = read.map_err(|why| why.to_string())?;
        if records != rows.len() {
            return Err(format!("the column {name} is shorter than others"));
        }
        // Without levels, no value is missing.
        let all = self.there.is_empty() || values == records;
        if number < FIXED && !all {
            return Err(format!("the column {name} has nulls"));
        }
        let mut next = 0;
        for (at, row) in rows.iter_mut().enumerate() {
            if !all && self.there[at] == 0 {
                continue;
            }
            match number {
                0 => row.hour_ms = self.whole[next],
                1..=3 => {
                    let text = [&mut row.node, &mut row.owner, &mut row.name];
                    let text = text.into_iter().nth(number - 1).expect("one of three");
                    let new = std::str::from_utf8(self.texts[next].data()).unwrap_or("?");
                    // Usually the text equals that of the last piece.
                    if text != new {
                        text.clear();
                        text.push_str(new);
                    }
                }
                4 => row.cpu_seconds = self.numbers[next],
                5 => row.resident_bytes = self.numbers[next],
                _ => {
                    let (kind, point) = ((number - FIXED) / POINTS, (number - FIXED) % POINTS);
                    if kind == 0 && row.curve.len() == point {
                        row.curve.push([self.numbers[next], f64::NAN, f64::NAN]);
                    } else if kind > 0 && point < row.curve.len() {
                        row.curve[point][kind] = self.numbers[next];
                    }
                }
            }
            next += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_returns_written_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let rows: Vec<Row> = (0..70_000)
            .map(|number| Row {
                hour_ms: i64::from(number),
                node: format!("n{}", number % 7),
                owner: "shop".into(),
                name: format!("é{number}"),
                cpu_seconds: f64::from(number),
                resident_bytes: 5.0,
                curve: (0..number % 13).map(|point| [f64::from(point), 2.0, f64::from(number)]).collect(),
            })
            .collect();
        let mut writer = Writer::new(File::create(&path).unwrap()).unwrap();
        rows.iter().for_each(|row| writer.push(row.clone()).unwrap());
        writer.finish().unwrap();
        let mut next = 0;
        let count = read(&path, |row| {
            assert_eq!(*row, rows[next]);
            next += 1;
        });
        assert_eq!(count.unwrap(), 70_000);
    }

    #[test]
    fn reader_rejects_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        assert!(read(&path, |_| ()).unwrap_err().to_string().contains("No such file"));
        for text in [&b""[..], b"PAR1", b"hello, this is no file of Parquet's", b"PAR1\0\0\0\0\0\0\0\0PAR1"] {
            std::fs::write(&path, text).unwrap();
            let why = read(&path, |_| ()).unwrap_err().to_string();
            assert!(why.contains("vellum plan export"), "{why}");
        }
        let schema = Arc::new(parse_message_type("message x { required int64 hour; }").unwrap());
        let writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
        writer.close().unwrap();
        assert!(read(&path, |_| ()).unwrap_err().to_string().contains("no column node"));
    }
}
