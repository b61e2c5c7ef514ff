//! Exports the working-set curves of each container from Prometheus' history, one hour after the other.
//!
//! Only one hour's containers are in memory at a time. An hour without history has no rows. A container
//! here is any job: units and Slurm steps are exported, too.

use super::file::{POINTS, Row, Writer};
use crate::Error;
use crate::http::Server;
use crate::metrics::{CLOCK, CURVE, CURVE_FAULTS};
use crate::prometheus::{self, rows};
use std::collections::BTreeMap;
use std::io::Write;
use vellum_governor::families::RESIDENT;

const HOUR: i64 = 3600;

/// Writes that many whole hours before `now`, in seconds since 1970; returns the number of rows.
///
/// # Errors
/// If anything is missing; the file is then incomplete.
pub fn export<W: Write + Send>(
    server: &Server,
    now: i64,
    hours: u32,
    writer: &mut Writer<W>,
) -> Result<u64, Error> {
    let mut count = 0;
    for before in (0..i64::from(hours)).rev() {
        for row in hour(server, (now.div_euclid(HOUR) - before) * HOUR)? {
            writer.push(row).map_err(|why| Error(format!("the file cannot be written: {why}")))?;
            count += 1;
        }
    }
    Ok(count)
}

fn hour(server: &Server, end: i64) -> Result<Vec<Row>, Error> {
    type Curve = BTreeMap<u64, [f64; 3]>;
    let mut found: BTreeMap<(String, String), (Row, Curve)> = BTreeMap::new();
    let queries = [
        format!("avg_over_time({CURVE}[1h])"),
        format!("avg_over_time({CURVE_FAULTS}[1h])"),
        format!("increase({CLOCK}[1h])"),
        format!("max_over_time({RESIDENT}[1h])"),
    ];
    for (number, query) in queries.into_iter().enumerate() {
        for mut answer in rows(server, &query, Some(end))? {
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
    let kinds = [("namespace", ""), ("unit", ""), ("user", "user "), ("slurm_job", "job ")];
    let owner = kinds.into_iter().find_map(|(label, front)| Some(format!("{front}{}", row.take(label)?)));
    owner.unwrap_or_default()
}
