//! The body of a line: the words after its header, parsed according to the header.
//!
//! The header determines if the words are values, figures of a summary, marks or facts. The start of an
//! observation is a whole number of nanoseconds: as floating point, it would be inexact once the machine has
//! been up for 104 days.

use std::str::FromStr;

use super::error::{LineError, Place, Problem, shown};
use super::escape::text;
use super::header::{Header, Role};
use super::words::{Word, Words};
use crate::column::Field;
use crate::{Base, Column, Machine, Mark, MarkCause, Observation, Series, Stat};

/// The word in place of a missing value.
pub(super) const ABSENT: &str = "-";

/// Quantities, with their units, of lines that belong to a series but are not columns.
pub(super) const MARK: (&str, &str) = ("Mark", "ns");
pub(super) const BATCH: (&str, &str) = ("Batch", "n");
pub(super) const CLOCK: (&str, &str) = ("Clock", "text");
pub(super) const BASE: (&str, &str) = ("Base", "ns");
pub(super) const CPU_BASE: (&str, &str) = ("CpuBase", "ns");
pub(super) const MACHINE: (&str, &str) = ("Machine", "text");

const KNOWN_COLUMNS: &str = "Start, Cpu, MinorFaults, MajorFaults, Voluntary, Involuntary, Steal";
const KNOWN_ABOUT: &str = "Batch, Clock, Base, CpuBase, Machine";
const BASE_KEYS: [&str; 7] = ["clock", "n", "mean", "min", "max", "std", "step"];
const BASE_PAIRS: &str = "clock, n, mean, min, max, std and step";
const MACHINE_PAIRS: &str = "the fields of a machine";

/// The values with which a series begins.
pub(super) fn values(words: Words<'_>, place: Place) -> Result<Vec<f64>, LineError> {
    words.map(|word| number(place, word)).collect()
}

/// The five figures of a summary.
pub(super) fn summary(words: Words<'_>, place: Place) -> Result<Stat, LineError> {
    let words: Vec<Word<'_>> = words.collect();
    let [n, mean, min, max, std] = words[..] else {
        return Err(place.error(Problem::Summary(words.len())));
    };
    let stat = Stat {
        n: whole(place, u64::MAX, n)?,
        mean: number(place, mean)?,
        min: number(place, min)?,
        max: number(place, max)?,
        std: number(place, std)?,
    };
    if stat.is_possible() { Ok(stat) } else { Err(place.error_at(n.0, Problem::Figures)) }
}

/// A line that adds to the series before it.
pub(super) struct More {
    /// The quantity in its header.
    pub(super) quantity: &'static str,
    /// The number of observations in the line, if it has a value for each.
    pub(super) cells: Option<usize>,
    /// Adds the line to a series; each cell goes to its observation.
    pub(super) add: Box<dyn FnOnce(&mut Series)>,
}

impl More {
    /// Parses the words of a line that is neither values nor a summary.
    pub(super) fn parse(header: &Header, words: Words<'_>, place: Place) -> Result<Self, LineError> {
        let quantity = header.quantity.as_str();
        let unknown = |known| place.error(Problem::Quantity { found: shown(quantity), known });
        let in_unit = |(quantity, unit): (&'static str, &'static str)| match header.unit.symbol() {
            found if found == unit => Ok(()),
            found => Err(place.error(Problem::Unit { quantity, unit, found: shown(found) })),
        };
        match header.role {
            Role::Marks if quantity == MARK.0 => {
                in_unit(MARK)?;
                let marks = words.map(|word| mark(place, word)).collect::<Result<_, _>>()?;
                Ok(Self::fact(MARK.0, marks, |series| &mut series.marks))
            }
            Role::Marks => Err(unknown(MARK.0)),
            Role::About => {
                let about =
                    [BATCH, CLOCK, BASE, CPU_BASE, MACHINE].into_iter().find(|(name, _)| *name == quantity);
                let about = about.ok_or_else(|| unknown(KNOWN_ABOUT))?;
                in_unit(about)?;
                Ok(match about {
                    BATCH => Self::fact(about.0, batch(words, place)?, |series| &mut series.batch),
                    CLOCK => Self::fact(about.0, Some(clock(words, place)?), |series| &mut series.clock),
                    BASE => Self::fact(about.0, Some(base(words, place)?), |series| &mut series.base),
                    CPU_BASE => Self::fact(about.0, Some(base(words, place)?), |series| &mut series.cpu_base),
                    _ => Self::fact(about.0, Some(machine(words, place)?), |series| &mut series.machine),
                })
            }
            Role::Column | Role::Values | Role::Summary => {
                let column = Column::parse(quantity).ok_or_else(|| unknown(KNOWN_COLUMNS))?;
                in_unit((column.name(), column.symbol()))?;
                match column.facts() {
                    (name, _, Field::Start(of)) => {
                        Self::column(name, words, of, |word| whole(place, u64::MAX, word))
                    }
                    (name, _, Field::Time(of)) => {
                        let cell = |word: Word<'_>| match word.1 {
                            ABSENT => Ok(None),
                            _ => number(place, word).map(Some),
                        };
                        Self::column(name, words, of, cell)
                    }
                    (name, _, Field::Count(of)) => {
                        Self::column(name, words, of, |word| whole(place, u32::MAX.into(), word))
                    }
                }
            }
        }
    }

    /// A fact about the series as a whole.
    fn fact<T: 'static>(quantity: &'static str, value: T, of: fn(&mut Series) -> &mut T) -> Self {
        Self { quantity, cells: None, add: Box::new(move |series| *of(series) = value) }
    }

    /// A field of each observation.
    fn column<'a, T: 'static>(
        quantity: &'static str,
        words: Words<'a>,
        of: fn(&mut Observation) -> &mut T,
        cell: impl Fn(Word<'a>) -> Result<T, LineError>,
    ) -> Result<Self, LineError> {
        let cells = words.map(cell).collect::<Result<Vec<T>, _>>()?;
        let count = Some(cells.len());
        let add = move |series: &mut Series| {
            series.observations.iter_mut().zip(cells).for_each(|(one, cell)| *of(one) = cell);
        };
        Ok(Self { quantity, cells: count, add: Box::new(add) })
    }
}

fn batch(words: Words<'_>, place: Place) -> Result<u64, LineError> {
    let (column, word) = only(words, BATCH.0, place)?;
    match whole(place, u64::MAX, (column, word))? {
        0 => Err(place.error_at(column, Problem::NoBatch)),
        batch => Ok(batch),
    }
}

fn clock(words: Words<'_>, place: Place) -> Result<String, LineError> {
    // A clock with an empty name has no word.
    if words.clone().next().is_none() {
        return Ok(String::new());
    }
    text(place, only(words, CLOCK.0, place)?)
}

fn base(words: Words<'_>, place: Place) -> Result<Base, LineError> {
    let mut found: [Option<Word<'_>>; BASE_KEYS.len()] = [None; BASE_KEYS.len()];
    for word in words {
        let (key, value) = pair(place, word, BASE_PAIRS)?;
        match BASE_KEYS.iter().position(|known| *known == key).map(|index| &mut found[index]) {
            Some(free @ None) => *free = Some(value),
            Some(Some(_)) | None => return Err(no_pair(place, word, BASE_PAIRS)),
        }
    }
    let get = |index: usize| found[index].ok_or_else(|| place.error(Problem::Base(BASE_KEYS[index])));
    let figure = |index| number(place, get(index)?);
    let base = Base {
        clock: text(place, get(0)?)?,
        n: whole(place, u64::MAX, get(1)?)?,
        mean: figure(2)?,
        min: figure(3)?,
        max: figure(4)?,
        std: figure(5)?,
        step: figure(6)?,
    };
    match base.impossible() {
        Some((what, _)) => Err(place.error(Problem::Base(what))),
        None => Ok(base),
    }
}

fn machine(words: Words<'_>, place: Place) -> Result<Machine, LineError> {
    let mut machine = Machine::default();
    let mut seen = Vec::new();
    for word in words {
        let (key, value) = pair(place, word, MACHINE_PAIRS)?;
        if seen.contains(&key) || !machine.set(key, &text(place, value)?) {
            return Err(no_pair(place, word, MACHINE_PAIRS));
        }
        seen.push(key);
    }
    Ok(machine)
}

fn mark(place: Place, word: Word<'_>) -> Result<Mark, LineError> {
    let (column, written) = word;
    let wrong = || place.error_at(column, Problem::Mark(shown(written)));
    let (start, rest) = written.split_once(',').ok_or_else(wrong)?;
    let (end, cause) = rest.split_once(',').ok_or_else(wrong)?;
    let ns = |digits| whole(place, u64::MAX, (column, digits)).map_err(|_| wrong());
    let (start_ns, end_ns) = (ns(start)?, ns(end)?);
    let cause = text(place, (column + written.len() - cause.len(), cause))?;
    if end_ns < start_ns {
        Err(wrong())
    } else {
        Ok(Mark { start_ns, end_ns, cause: MarkCause::parse(&cause) })
    }
}

fn number(place: Place, (column, word): Word<'_>) -> Result<f64, LineError> {
    let number = f64::from_str(word).ok().filter(|number| number.is_finite());
    number.ok_or_else(|| place.error_at(column, Problem::Number(shown(word))))
}

/// A whole number up to `max`. Only digits are allowed: `from_str` would also accept a plus sign.
fn whole<T: FromStr>(place: Place, max: u64, (column, word): Word<'_>) -> Result<T, LineError> {
    let number = word.parse().ok().filter(|_| word.bytes().all(|byte| byte.is_ascii_digit()));
    number.ok_or_else(|| place.error_at(column, Problem::Whole { found: shown(word), max }))
}

fn only<'a>(words: Words<'a>, quantity: &'static str, place: Place) -> Result<Word<'a>, LineError> {
    let words: Vec<Word<'_>> = words.collect();
    let [word] = words[..] else {
        return Err(place.error(Problem::One { quantity, found: words.len() }));
    };
    Ok(word)
}

/// `key=value`, and the column where the value begins.
fn pair<'a>(place: Place, word: Word<'a>, keys: &'static str) -> Result<(&'a str, Word<'a>), LineError> {
    let (key, value) = word.1.split_once('=').ok_or_else(|| no_pair(place, word, keys))?;
    Ok((key, (word.0 + key.len() + 1, value)))
}

fn no_pair(place: Place, (column, word): Word<'_>, keys: &'static str) -> LineError {
    place.error_at(column, Problem::Pair { found: shown(word), keys })
}
