//! Names the columns of a series: the measurements stored beside each observation's value, such as the start
//! or the page faults.
//!
//! The text format, the documentation of the JSON and the command line all use this list of names and units,
//! so the formats stay consistent.
//!
//! Invariant: if a file lacks a column, every observation is read as having no such time or no such events.

use crate::{Observation, Series, Unit};

/// A column of a series, beside its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// [`Observation::start_ns`].
    Start,
    /// [`Observation::cpu_ns`].
    Cpu,
    /// [`Observation::minor`].
    MinorFaults,
    /// [`Observation::major`].
    MajorFaults,
    /// [`Observation::voluntary`].
    Voluntary,
    /// [`Observation::involuntary`].
    Involuntary,
    /// [`Observation::steal_ns`].
    Steal,
}

impl Column {
    /// All columns, in the order in which they are written.
    pub const ALL: [Self; 7] = [
        Self::Start,
        Self::Cpu,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::Voluntary,
        Self::Involuntary,
        Self::Steal,
    ];

    /// The column with exactly this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    /// The name that [`Column::parse`] reads, the key in JSON, and the field.
    pub(crate) const fn facts(self) -> (&'static str, &'static str, Field) {
        match self {
            Self::Start => ("Start", "start_ns", Field::Start(|one| &mut one.start_ns)),
            Self::Cpu => ("Cpu", "cpu_ns", Field::Time(|one| &mut one.cpu_ns)),
            Self::MinorFaults => ("MinorFaults", "minor", Field::Count(|one| &mut one.minor)),
            Self::MajorFaults => ("MajorFaults", "major", Field::Count(|one| &mut one.major)),
            Self::Voluntary => ("Voluntary", "voluntary", Field::Count(|one| &mut one.voluntary)),
            Self::Involuntary => ("Involuntary", "involuntary", Field::Count(|one| &mut one.involuntary)),
            Self::Steal => ("Steal", "steal_ns", Field::Time(|one| &mut one.steal_ns)),
        }
    }

    /// The name that [`Column::parse`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// The unit of the column's values.
    #[must_use]
    pub fn unit(self) -> Unit {
        Unit::parse(self.symbol())
    }

    /// The symbol of the column's unit.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        if matches!(self.facts().2, Field::Count(_)) { "n" } else { "ns" }
    }

    /// The value in `observation`, in the column's unit; `None` if it is absent. A start above 2⁵³ ns (104
    /// days) is rounded.
    #[must_use]
    pub fn value(self, observation: &Observation) -> Option<f64> {
        let mut one = *observation;
        match self.facts().2 {
            Field::Start(of) => Some(*of(&mut one) as f64),
            Field::Time(of) => *of(&mut one),
            Field::Count(of) => Some((*of(&mut one)).into()),
        }
    }

    /// True if any of `observations` has a value in this column that is not absent or zero. A time of zero
    /// is a value.
    #[must_use]
    pub fn is_recorded(self, observations: &[Observation]) -> bool {
        let is_time = matches!(self.facts().2, Field::Time(_));
        observations.iter().filter_map(|one| self.value(one)).any(|value| is_time || value != 0.0)
    }
}

/// The field of an observation that a column has.
pub(crate) enum Field {
    Start(fn(&mut Observation) -> &mut u64),
    Time(fn(&mut Observation) -> &mut Option<f64>),
    Count(fn(&mut Observation) -> &mut u32),
}

impl Series {
    /// The series of one quantity: the series itself if that is its quantity, else one of its columns
    /// ([`Column`]) as values.
    ///
    /// The result keeps the name, labels, starts, marks and machine. Processor time also keeps the batch,
    /// with its own base, so that its [`walls`](Self::walls) are an operation's net processor time. All other
    /// columns count whole observations. Observations without the column are left out. `None` if all lack it,
    /// or if there is no such quantity.
    #[must_use]
    pub fn select(&self, quantity: &str) -> Option<Self> {
        if quantity == self.quantity {
            return Some(self.clone());
        }
        let column = Column::parse(quantity)?;
        let observation = |one: &Observation| {
            let value = column.value(one)?;
            Some(Observation { start_ns: one.start_ns, wall_ns: value, ..Observation::default() })
        };
        let observations: Vec<Observation> = self.observations.iter().filter_map(observation).collect();
        if observations.is_empty() {
            return None;
        }
        let is_cpu = column == Column::Cpu;
        Some(Self {
            name: self.name.clone(),
            labels: self.labels.clone(),
            quantity: column.name().to_owned(),
            unit: column.unit(),
            batch: if is_cpu { self.batch } else { 1 },
            base: if is_cpu { self.cpu_base.clone() } else { None },
            clock: if is_cpu { self.cpu_base.as_ref().map(|base| base.clock.clone()) } else { None },
            marks: self.marks.clone(),
            machine: self.machine.clone(),
            cpu_base: None,
            observations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Base, Sample};

    #[test]
    fn a_column_becomes_a_series() {
        let cpu_base = Base::of("thread", &Sample::from(vec![400.0]));
        let observation =
            |start_ns, cpu_ns, minor| Observation { start_ns, cpu_ns, minor, ..Observation::default() };
        let series = Series {
            batch: 10,
            cpu_base,
            observations: vec![
                observation(5, Some(600.0), 3),
                observation(9, None, 0),
                observation(12, Some(400.0), 1),
            ],
            ..Series::plain("X", "Time", Unit::Nanoseconds, [])
        };
        let cpu = series.select("Cpu").unwrap();
        assert_eq!(
            (cpu.walls(), cpu.starts(), cpu.clock.as_deref()),
            (vec![20.0, 0.0], Some(vec![5, 12]), Some("thread"))
        );
        let faults = series.select("MinorFaults").unwrap();
        assert_eq!((faults.walls(), faults.unit, faults.batch), (vec![3.0, 0.0, 1.0], Unit::Count, 1));
        assert_eq!(series.select("Time").unwrap(), series);
        assert_eq!((series.select("Steal"), series.select("Nonsense")), (None, None));
    }

    #[test]
    fn columns_of_zeros_count_as_absent() {
        let nothing = [Observation::default()];
        assert!(Column::ALL.iter().all(|column| !column.is_recorded(&nothing)));
        let zero_time = [Observation { cpu_ns: Some(0.0), ..Observation::default() }];
        assert!(Column::Cpu.is_recorded(&zero_time), "zero is a time");
    }
}
