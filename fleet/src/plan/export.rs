//! Exports the curves of each container from Prometheus' history, one hour after the other.
//!
//! Only one hour's containers are in memory at a time. An hour without history has no rows. A container
//! here is any job: units and Slurm steps are exported, too.

use super::file::{POINTS, Row, Writer};
use crate::http::Server;
use crate::metrics::{CLOCK, CURVE, CURVE_FAULTS};
use crate::prometheus::{self, HistoryError, rows_at};
use parquet::errors::ParquetError;
use std::collections::BTreeMap;
use std::io::Write;
use vellum_governor::families::RESIDENT;

const HOUR: i64 = 3600;

/// The hours to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// The end of the first hour, a whole hour, in seconds since 1970.
    pub first: i64,
    /// The number of hours.
    pub count: u32,
}

impl Hours {
    /// The last whole hours before `now`, in seconds since 1970.
    #[must_use]
    pub fn before(now: i64, count: u32) -> Hours {
        let last = now.div_euclid(HOUR) * HOUR;
        Hours { first: last - HOUR * i64::from(count.saturating_sub(1)), count }
    }
}

/// The export has failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Prometheus has no answer.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The file cannot be written.
    #[error("the file cannot be written: {0}")]
    Parquet(#[from] ParquetError),
}

/// Writes all hours; returns the number of rows.
///
/// # Errors
/// [`ExportError`] if anything is missing; the file is then incomplete.
pub fn export<W: Write + Send>(
    server: &Server,
    hours: Hours,
    writer: &mut Writer<W>,
    mut progress: impl FnMut(u32, u64),
) -> Result<u64, ExportError> {
    let mut count = 0;
    for number in 0..hours.count {
        for row in hour(server, hours.first + HOUR * i64::from(number))? {
            writer.push(row)?;
            count += 1;
        }
        progress(number + 1, count);
    }
    Ok(count)
}

fn hour(server: &Server, end: i64) -> Result<Vec<Row>, HistoryError> {
    type Curve = BTreeMap<u64, [f64; 3]>;
    let mut found: BTreeMap<(String, String), (Row, Curve)> = BTreeMap::new();
    let queries = [
        format!("avg_over_time({CURVE}[1h])"),
        format!("avg_over_time({CURVE_FAULTS}[1h])"),
        format!("increase({CLOCK}[1h])"),
        format!("max_over_time({RESIDENT}[1h])"),
    ];
    for (number, query) in queries.into_iter().enumerate() {
        for mut answer in rows_at(server, &query, Some(end))? {
            let Some(value) = answer.number().filter(|value| value.is_finite()) else { continue };
            let (Some(node), Some(name)) = (answer.take("instance"), answer.take("name")) else { continue };
            let key = (node, name);
            if number == 0 && !found.contains_key(&key) {
                let (node, name) = key.clone();
                let row =
                    Row { hour_ms: end * 1000, node, owner: owner(&mut answer), name, ..Row::default() };
                found.insert(key.clone(), (row, Curve::new()));
            }
            // Rows without a curve are of no use for a plan.
            let Some((row, curve)) = found.get_mut(&key) else { continue };
            match number {
                0 | 1 => {
                    let window = answer.take("window").and_then(|text| text.parse::<f64>().ok());
                    let Some(window) = window.filter(|window| *window > 0.0 && window.is_finite()) else {
                        continue;
                    };
                    // The bits of positive numbers have the order of the numbers.
                    let point = curve.entry(window.to_bits()).or_insert([window, f64::NAN, f64::NAN]);
                    point[number + 1] = value;
                }
                2 => row.cpu_seconds = value,
                _ => row.resident_bytes = value,
            }
        }
    }
    let whole = |(mut row, curve): (Row, Curve)| {
        let points = curve.into_values().filter(|point| point.iter().all(|value| value.is_finite()));
        row.curve = points.take(POINTS).collect();
        // Averages of hours with changing points may cross: a larger window never has a smaller working set.
        for at in 1..row.curve.len() {
            row.curve[at][1] = row.curve[at][1].max(row.curve[at - 1][1]);
        }
        row
    };
    Ok(found.into_values().map(whole).filter(|row| !row.curve.is_empty()).collect())
}

fn owner(row: &mut prometheus::Row) -> String {
    let user = |row: &mut prometheus::Row| Some(format!("user {}", row.take("user")?));
    let namespace = row.take("namespace").or_else(|| row.take("unit"));
    namespace
        .or_else(|| user(row))
        .or_else(|| Some(format!("job {}", row.take("slurm_job")?)))
        .unwrap_or_default()
}
