//! The writer: formats series and summaries as text lines, also value by value during a measurement.
//!
//! Numbers have the fewest digits that are read back as the same number. Columns with nothing but zeros or
//! missing values are left out. A series is checked before its first byte is written, so everything written
//! can be read back.

use std::fmt;
use std::io::{self, Write};

use super::body::{ABSENT, BASE, BATCH, CLOCK, CPU_BASE, MACHINE, MARK};
use super::error::WriteError;
use super::escape::Escaped;
use super::header::{Header, Role};
use super::reader::Entry;
use crate::digits::Number;
use crate::{Base, Column, Mark, Observation, Series, Summary, Unit};

/// Writes one entry.
///
/// # Errors
/// If the output fails, or a series is not valid.
pub fn write_entry(out: &mut impl Write, entry: &Entry) -> Result<(), WriteError> {
    match entry {
        Entry::Series(series) => write_series(out, series),
        Entry::Summary(summary) => write_summary(out, summary),
    }
}

/// Writes a series: its values in one line, then one line for each other fact.
///
/// # Errors
/// If the output fails, or the series is not [valid](Series::validate); then nothing is written.
pub fn write_series(out: &mut impl Write, series: &Series) -> Result<(), WriteError> {
    series.validate()?;
    let observations = &series.observations;
    let mut line = Lines { out, series };
    line.begin(Role::Values, &series.quantity, series.unit.symbol())?;
    line.words(observations.iter().map(|one| Number(one.wall_ns)))?;
    if series.batch != 1 {
        line.begin(Role::About, BATCH.0, BATCH.1)?;
        line.words([series.batch])?;
    }
    if let Some(clock) = &series.clock {
        line.begin(Role::About, CLOCK.0, CLOCK.1)?;
        line.words((!clock.is_empty()).then_some(Escaped(clock)))?;
    }
    for (base, (quantity, unit)) in [(&series.base, BASE), (&series.cpu_base, CPU_BASE)] {
        if let Some(base) = base {
            line.begin(Role::About, quantity, unit)?;
            line.words([BaseWords(base)])?;
        }
    }
    if let Some(machine) = &series.machine {
        line.begin(Role::About, MACHINE.0, MACHINE.1)?;
        let known = machine.fields().into_iter().filter_map(|(key, value)| Some(Pair(key, value?)));
        line.words(known)?;
    }
    for column in Column::ALL.into_iter().filter(|column| column.is_recorded(observations)) {
        line.begin(Role::Column, column.name(), column.symbol())?;
        line.words(observations.iter().map(|one| Cell(column, one)))?;
    }
    if !series.marks.is_empty() {
        line.begin(Role::Marks, MARK.0, MARK.1)?;
        line.words(series.marks.iter().map(MarkWord))?;
    }
    Ok(())
}

/// Writes a summary as the source does: `NAME:summary:Sample:labels:Time:us n mean min max std`.
///
/// # Errors
/// If the output fails, or if no values can have these figures; nothing is written then.
pub fn write_summary(out: &mut impl Write, summary: &Summary) -> Result<(), WriteError> {
    let stat = summary.stat;
    if !stat.is_possible() {
        return Err(WriteError::Figures { name: summary.name.clone(), stat });
    }
    let header = Header {
        name: summary.name.clone(),
        role: Role::Summary,
        labels: summary.labels.clone(),
        quantity: summary.quantity.clone(),
        unit: summary.unit.clone(),
    };
    write!(out, "{header} {}", stat.n)?;
    for figure in [stat.mean, stat.min, stat.max, stat.std] {
        write!(out, " {}", Number(figure))?;
    }
    out.write_all(b"\n")?;
    Ok(())
}

struct Lines<'a, W> {
    out: &'a mut W,
    series: &'a Series,
}

impl<W: Write> Lines<'_, W> {
    fn begin(&mut self, role: Role, quantity: &str, unit: &str) -> io::Result<()> {
        let header = Header {
            name: self.series.name.clone(),
            role,
            labels: self.series.labels.clone(),
            quantity: quantity.to_owned(),
            unit: Unit::parse(unit),
        };
        write!(self.out, "{header}")
    }

    fn words(&mut self, words: impl IntoIterator<Item = impl fmt::Display>) -> io::Result<()> {
        for word in words {
            write!(self.out, " {word}")?;
        }
        self.out.write_all(b"\n")
    }
}

struct Cell<'a>(Column, &'a Observation);

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.value(self.1) {
            // A float would round a late start.
            Some(_) if self.0 == Column::Start => self.1.start_ns.fmt(f),
            Some(value) => Number(value).fmt(f),
            None => f.write_str(ABSENT),
        }
    }
}

struct Pair(&'static str, String);

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.0, Escaped(&self.1))
    }
}

struct MarkWord<'a>(&'a Mark);

impl fmt::Display for MarkWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mark { start_ns, end_ns, cause } = self.0;
        write!(f, "{start_ns},{end_ns},{}", Escaped(cause.word()))
    }
}

struct BaseWords<'a>(&'a Base);

impl fmt::Display for BaseWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clock={} n={}", Escaped(&self.0.clock), self.0.n)?;
        self.0.figures().into_iter().try_for_each(|(key, value)| write!(f, " {key}={}", Number(value)))
    }
}
