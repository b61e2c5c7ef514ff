//! Series as CSV, for spreadsheets and data frames: one row an observation, the units in the header.
//!
//! ```text
//! name,labels,observation,batch [n],Time [ns],NetTime [ns],Start [ns],Cpu [ns],NetCpu [ns],MinorFaults [n],…
//! BASE,tsc,1,1,486,466,1200,480,50,0,…
//! ```
//!
//! Both the time as measured and an operation's net time (less the base, by the batch) are there, so that
//! readers need not know what a base is. All columns are always there; a time that was not recorded is empty.
//! Marks, bases and machines have no place in a table of observations: the text format and JSON hold them.
//!
//! All series of one file are of one quantity in one unit, since a header says it once.
//!
//! Source of quoting and line ends: RFC 4180, with `\n`.

use std::io::{self, Write};

use thiserror::Error;

use crate::line::labels_field;
use crate::number::Number;
use crate::{Column, Series, SeriesError, Unit};

/// Why series could not be written as CSV.
#[derive(Debug, Error)]
pub enum CsvError {
    /// The output failed.
    #[error("cannot write observations as CSV: {0}")]
    Io(#[from] io::Error),
    /// Two series that do not fit under one header.
    #[error(
        "series {name} holds {quantity} in {unit}, those before it {first_quantity} in {first_unit}; write them to files of their own"
    )]
    Mixed {
        /// The one that does not fit.
        name: String,
        /// Its quantity.
        quantity: String,
        /// Its unit.
        unit: Unit,
        /// The header's quantity.
        first_quantity: String,
        /// The header's unit.
        first_unit: Unit,
    },
    /// A series that is not one.
    #[error(transparent)]
    Series(#[from] SeriesError),
}

/// Writes series of one quantity and unit as one table.
///
/// # Errors
/// If the output fails, or at a series that does not fit or is not [valid](Series::validate): the rows before
/// it are written.
pub fn write<'a>(out: &mut impl Write, series: impl IntoIterator<Item = &'a Series>) -> Result<(), CsvError> {
    let mut table = ::csv::Writer::from_writer(out);
    let mut first: Option<(&str, &Unit)> = None;
    for series in series {
        series.validate()?;
        let own = (series.quantity.as_str(), &series.unit);
        match first {
            None => {
                record(&mut table, header(series))?;
                first = Some(own);
            }
            Some(first) if first == own => {}
            Some((quantity, unit)) => {
                return Err(CsvError::Mixed {
                    name: series.name.clone(),
                    quantity: series.quantity.clone(),
                    unit: series.unit.clone(),
                    first_quantity: quantity.to_owned(),
                    first_unit: unit.clone(),
                });
            }
        }
        rows(&mut table, series)?;
    }
    table.flush()?;
    Ok(())
}

/// How a quantity in a unit heads its column.
fn heading(quantity: &str, unit: &str) -> String {
    if unit.is_empty() { quantity.to_owned() } else { format!("{quantity} [{unit}]") }
}

fn header(series: &Series) -> Vec<String> {
    let unit = series.unit.symbol();
    let mut fields =
        vec!["name".to_owned(), "labels".to_owned(), "observation".to_owned(), heading("batch", "n")];
    fields.push(heading(&series.quantity, unit));
    fields.push(heading(&format!("Net{}", series.quantity), unit));
    for column in Column::ALL {
        fields.push(heading(column.name(), column.symbol()));
        if column == Column::Cpu {
            fields.push(heading("NetCpu", column.symbol()));
        }
    }
    fields
}

fn rows<W: Write>(table: &mut ::csv::Writer<W>, series: &Series) -> io::Result<()> {
    let labels = labels_field(&series.labels);
    let maybe = |value: Option<f64>| value.map_or_else(String::new, |value| Number(value).to_string());
    let net = series.walls().into_iter().zip(series.cpus());
    for (index, (one, (net_wall, net_cpu))) in series.observations.iter().zip(net).enumerate() {
        let mut fields =
            vec![series.name.clone(), labels.clone(), (index + 1).to_string(), series.batch.to_string()];
        fields.extend([one.wall_ns, net_wall].map(|value| Number(value).to_string()));
        for column in Column::ALL {
            fields.push(match column {
                Column::Start if one.start_ns == 0 => String::new(),
                Column::Start => one.start_ns.to_string(),
                _ => maybe(column.value(one)),
            });
            if column == Column::Cpu {
                fields.push(maybe(net_cpu));
            }
        }
        record(table, fields)?;
    }
    Ok(())
}

fn record<W: Write>(table: &mut ::csv::Writer<W>, fields: Vec<String>) -> io::Result<()> {
    // Records of one table have one length, so that all that can fail is the output.
    table.write_record(fields).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Base, Observation, Sample};

    fn table(series: &[Series]) -> Result<String, CsvError> {
        let mut out = Vec::new();
        write(&mut out, series).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_row_an_observation() {
        let first = Observation {
            start_ns: 1200,
            wall_ns: 486.0,
            cpu_ns: Some(480.0),
            minor: 1,
            major: 2,
            voluntary: 3,
            involuntary: 4,
            steal_ns: Some(0.5),
        };
        let series = Series {
            name: "a,\"b\"".into(),
            labels: vec!["arm=A".into(), "64 B".into()],
            batch: 2,
            base: Base::of("tsc", &Sample::from(vec![20.0])),
            observations: vec![first, Observation { wall_ns: 402.0, ..Observation::default() }],
            ..Series::default()
        };
        assert_eq!(
            table(&[series]).unwrap(),
            "name,labels,observation,batch [n],Time [ns],NetTime [ns],Start [ns],Cpu [ns],NetCpu [ns],\
             MinorFaults [n],MajorFaults [n],Voluntary [n],Involuntary [n],Steal [ns]\n\
             \"a,\"\"b\"\"\",\"arm=A,64%20B\",1,2,486,233,1200,480,240,1,2,3,4,0.5\n\
             \"a,\"\"b\"\"\",\"arm=A,64%20B\",2,2,402,191,,,,0,0,0,0,\n"
        );
    }

    #[test]
    fn one_header_is_true_of_all() {
        let of = |quantity: &str, unit| Series::plain("X", quantity, unit, [1.0]);
        let plain = table(&[of("Ratio", Unit::parse("")), of("Ratio", Unit::parse(""))]).unwrap();
        assert!(plain.starts_with("name,labels,observation,batch [n],Ratio,NetRatio,Start [ns]"), "{plain}");
        assert_eq!(plain.lines().count(), 3);
        let mixed = table(&[of("Time", Unit::Nanoseconds), of("Time", Unit::Seconds)]).unwrap_err();
        assert!(mixed.to_string().contains("holds Time in s, those before it Time in ns"), "{mixed}");
        assert!(table(&[of("A", Unit::Count), of("B", Unit::Count)]).is_err());
        assert_eq!(table(&[]).unwrap(), "");
    }

    #[test]
    fn what_is_no_number_is_not_written() {
        let series = Series::plain("X", "Time", Unit::Nanoseconds, [f64::INFINITY]);
        assert!(matches!(table(&[series]), Err(CsvError::Series(_))));
    }

    #[test]
    fn a_full_output_is_an_error() {
        let series = Series::plain("X", "Time", Unit::Nanoseconds, [1.0]);
        assert!(matches!(write(&mut [0u8; 10].as_mut_slice(), [&series]), Err(CsvError::Io(_))));
    }
}
