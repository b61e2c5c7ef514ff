//! An observation (one timing) with the events that happened during it, and series of observations.
//!
//! A bare list of times shows that some are long, but not why. An observation therefore also has the system's
//! counts during the timing: processor time, faults, switches, stolen time. A series also holds *marks*:
//! spans of time in which a known cause (a collector, an allocator, the program itself) was at work. Readers
//! of a series can then explain long observations without measuring again.
//!
//! ```text
//! time  ──┬──────┬──┬──────┬──┬───────────────┬──┬──────┬──▶
//!         │ wall │  │ wall │  │     wall      │  │ wall │     observations, each `batch` operations
//!      start_ns                │▓▓▓▓▓▓▓│                      marks (same clock), here a collector at work
//! ```
//!
//! Invariants:
//! - observations are in the order in which they were made;
//! - `wall_ns` and `cpu_ns` are unchanged clock readings. [`Series::walls`] and [`Series::cpus`]
//!   subtract the cost of an empty timing (the *base*) and divide by the batch;
//! - starts and marks are on one clock (`CLOCK_MONOTONIC`).
//!
//! Another program may write a series of plain values. Each value is stored as `wall_ns`, in the series'
//! unit; all other fields are absent or zero.
//!
//! Source: Bates 1999, "Reliable Benchmarking with Limbo on Inferno", keeps all observations, and infers the
//! collector's work from the order of the long ones. Here the collector records its work.

use serde::{Deserialize, Serialize};

use crate::{Base, Machine, Mark, Stat, Unit, json};

/// One timed piece of work (`batch` operations), with the readings of clocks and counters.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// The start, in nanoseconds of `CLOCK_MONOTONIC`; 0 if not recorded.
    pub start_ns: u64,
    /// The wall time, base included, in nanoseconds. In a series of plain values, the value in the series'
    /// unit.
    pub wall_ns: f64,
    /// Processor time of the thread, in nanoseconds, base included.
    pub cpu_ns: Option<f64>,
    /// Page faults served without a read from storage.
    pub minor: u32,
    /// Page faults that waited for a read from storage.
    pub major: u32,
    /// Switches because the thread waited.
    pub voluntary: u32,
    /// Switches because the thread was preempted.
    pub involuntary: u32,
    /// Time that the hypervisor took for others, in nanoseconds, if it reports this.
    pub steal_ns: Option<f64>,
}

/// Observations of one quantity, in order, with everything needed to interpret them later.
///
/// Make one with `Series { name, observations, ..Series::default() }`, or [`Series::plain`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
// `json` checks a series before it is written and after it was read.
#[serde(remote = "Self")]
pub struct Series {
    /// The name, such as `BASE`.
    pub name: String,
    /// The circumstances, such as `arm=A` or `tsc`.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The quantity of the values, such as `Time`.
    pub quantity: String,
    /// The unit of [`Observation::wall_ns`]: [`Unit::Nanoseconds`] in every recorded series.
    pub unit: Unit,
    /// The number of operations in an observation, at least 1.
    #[serde(default = "json::one")]
    pub batch: u64,
    /// The clock of the walls, such as `tsc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// The base of the clock of the walls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// The base of the clock of the processor times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_base: Option<Base>,
    /// The machine of the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The observations, in order.
    #[serde(serialize_with = "json::columns", deserialize_with = "json::rows")]
    pub observations: Vec<Observation>,
    /// The marks: spans of other work during the series.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            name: String::new(),
            labels: Vec::new(),
            quantity: Self::TIME.to_owned(),
            unit: Unit::Nanoseconds,
            batch: 1,
            base: None,
            cpu_base: None,
            clock: None,
            observations: Vec::new(),
            marks: Vec::new(),
            machine: None,
        }
    }
}

impl Series {
    /// The quantity of a series of times.
    pub const TIME: &str = "Time";

    /// A series of values only.
    pub fn plain(
        name: impl Into<String>,
        quantity: impl Into<String>,
        unit: Unit,
        values: impl IntoIterator<Item = f64>,
    ) -> Self {
        let observation = |value| Observation { wall_ns: value, ..Observation::default() };
        Self {
            name: name.into(),
            quantity: quantity.into(),
            unit,
            observations: values.into_iter().map(observation).collect(),
            ..Self::default()
        }
    }

    /// Per-operation wall times less the base, in order, in the series' unit: (wall − base) / batch.
    ///
    /// A value is negative if an observation was shorter than the shortest empty one. Nothing is subtracted
    /// without a base, or from a quantity other than time.
    #[must_use]
    pub fn walls(&self) -> Vec<f64> {
        let base = self.base.as_ref().zip(self.unit.nanoseconds());
        let base = base.map_or(0.0, |(base, nanoseconds)| base.min / nanoseconds);
        self.observations.iter().map(|one| (one.wall_ns - base) / self.operations()).collect()
    }

    /// Per-operation processor times less their own base, in order, in nanoseconds; `None` if not recorded.
    #[must_use]
    pub fn cpus(&self) -> Vec<Option<f64>> {
        let base = self.cpu_base.as_ref().map_or(0.0, |base| base.min);
        let net = |cpu: f64| (cpu - base) / self.operations();
        self.observations.iter().map(|one| one.cpu_ns.map(net)).collect()
    }

    /// The starts of the observations, in nanoseconds of `CLOCK_MONOTONIC`; `None` if not recorded.
    #[must_use]
    pub fn starts(&self) -> Option<Vec<u64>> {
        let recorded = self.observations.iter().any(|one| one.start_ns != 0);
        recorded.then(|| self.observations.iter().map(|one| one.start_ns).collect())
    }

    /// The five figures of [`walls`](Self::walls).
    #[must_use]
    pub fn stat(&self) -> Option<Stat> {
        Stat::of(&self.walls())
    }

    /// The value of the label `key=value`, if there is one.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find_map(|label| label.strip_prefix(key)?.strip_prefix('='))
    }

    /// The series with its values in nanoseconds, if they are times. Readers of files then need no units.
    #[must_use]
    pub fn into_nanoseconds(mut self) -> Option<Self> {
        let nanoseconds = self.unit.nanoseconds()?;
        if self.unit != Unit::Nanoseconds {
            self.observations.iter_mut().for_each(|one| one.wall_ns *= nanoseconds);
            self.unit = Unit::Nanoseconds;
        }
        Some(self)
    }

    /// The batch as a divisor. No code here makes a batch of zero; it counts as one.
    fn operations(&self) -> f64 {
        self.batch.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;

    fn base(ns: f64) -> Option<Base> {
        Base::of("tsc", &Sample::from(vec![ns, ns + 10.0]))
    }

    #[test]
    fn values_are_an_operations_net_time() {
        let observation = |wall_ns, cpu_ns| Observation { wall_ns, cpu_ns, ..Observation::default() };
        let series = Series {
            batch: 4,
            base: base(20.0),
            cpu_base: base(430.0),
            observations: vec![observation(60.0, Some(470.0)), observation(20.0, None)],
            ..Series::default()
        };
        assert_eq!(series.walls(), [10.0, 0.0]);
        assert_eq!(series.cpus(), [Some(10.0), None]);
        assert_eq!(series.stat().unwrap().mean, 5.0);
        assert_eq!(series.starts(), None);
    }

    #[test]
    fn the_base_is_in_the_series_unit() {
        let series = |unit| Series { base: base(2000.0), ..Series::plain("X", "Time", unit, [486.0]) };
        assert_eq!(series(Unit::Microseconds).walls(), [484.0]);
        assert_eq!(series(Unit::Bytes).walls(), [486.0]);
        let converted = series(Unit::Microseconds).into_nanoseconds().unwrap();
        assert_eq!((converted.walls(), converted.unit), (vec![484_000.0], Unit::Nanoseconds));
        assert_eq!(series(Unit::Bytes).into_nanoseconds(), None);
    }

    #[test]
    fn labels_with_keys_are_found() {
        let series = Series { labels: vec!["quick".into(), "arm=A".into()], ..Series::default() };
        assert_eq!((series.label("arm"), series.label("quick")), (Some("A"), None));
    }
}
