//! Checks that a series is valid, before it is written and after it was read.
//!
//! A series in memory can hold values that no file may contain: a value that is not a number, a mark that
//! ends before it starts. The text format and JSON share this check, so there is one rule and one message.

use thiserror::Error;

use crate::{Base, Series, Stat};

/// Errors that make a series invalid.
#[derive(Debug, Clone, PartialEq, Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SeriesError {
    /// A value is infinite or not a number. Observations are counted from 1.
    #[error(
        "series {name}: {what} of observation {observation} is {value}; leave out what could not be measured"
    )]
    NotFinite { name: String, what: &'static str, observation: usize, value: f64 },
    /// A base has a figure that no clock can have.
    #[error("series {name}: the base of clock {clock} has {what} {value}; measure it again with Base::of")]
    Base { name: String, clock: String, what: &'static str, value: f64 },
    /// A batch of zero operations.
    #[error("series {name}: its batch is 0 operations; an observation holds at least 1")]
    Batch { name: String },
    /// A mark that ends before it starts. Marks are counted from 1.
    #[error(
        "series {name}: mark {mark} ends at {end_ns} ns, before its start at {start_ns} ns; use one clock for both"
    )]
    Mark { name: String, mark: usize, start_ns: u64, end_ns: u64 },
}

impl Series {
    /// Checks that the series can be written and read back: all values are finite, an observation has at
    /// least one operation, and marks do not end before they start.
    ///
    /// # Errors
    /// The first invalid value, with its place.
    pub fn validate(&self) -> Result<(), SeriesError> {
        let name = || self.name.clone();
        if self.batch == 0 {
            return Err(SeriesError::Batch { name: name() });
        }
        for (index, one) in self.observations.iter().enumerate() {
            let values = [("the value", Some(one.wall_ns)), ("Cpu", one.cpu_ns), ("Steal", one.steal_ns)];
            for (what, value) in values {
                if let Some(value) = value.filter(|value| !value.is_finite()) {
                    return Err(SeriesError::NotFinite { name: name(), what, observation: index + 1, value });
                }
            }
        }
        for base in [&self.base, &self.cpu_base].into_iter().flatten() {
            if let Some((what, value)) = base.impossible() {
                return Err(SeriesError::Base { name: name(), clock: base.clock.clone(), what, value });
            }
        }
        let backwards = self.marks.iter().position(|mark| mark.end_ns < mark.start_ns);
        if let Some(index) = backwards {
            let (start_ns, end_ns) = (self.marks[index].start_ns, self.marks[index].end_ns);
            return Err(SeriesError::Mark { name: name(), mark: index + 1, start_ns, end_ns });
        }
        Ok(())
    }
}

impl Stat {
    /// True if some values can have these figures.
    pub(crate) fn is_possible(&self) -> bool {
        let finite = [self.mean, self.min, self.max, self.std].iter().all(|figure| figure.is_finite());
        finite && self.n > 0 && self.min <= self.mean && self.mean <= self.max && self.std >= 0.0
    }
}

impl Base {
    /// The first figure that no clock can have, if there is one.
    pub(crate) fn impossible(&self) -> Option<(&'static str, f64)> {
        let wrong = |(what, value): &(&str, f64)| {
            !value.is_finite() || *value < 0.0 || (*what == "step" && *value == 0.0)
        };
        self.figures().into_iter().find(wrong)
    }

    /// The figures by name, in the order in which they are written.
    pub(crate) fn figures(&self) -> [(&'static str, f64); 5] {
        let Self { mean, min, max, std, step, .. } = *self;
        [("mean", mean), ("min", min), ("max", max), ("std", std), ("step", step)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mark, MarkCause, Observation, Sample};

    fn series() -> Series {
        let observation =
            Observation { wall_ns: 1.0, cpu_ns: Some(1.0), steal_ns: Some(0.0), ..Observation::default() };
        Series {
            name: "X".into(),
            base: Base::of("tsc", &Sample::from(vec![10.0])),
            observations: vec![observation; 3],
            marks: vec![Mark { start_ns: 5, end_ns: 5, cause: MarkCause::Trim }],
            ..Series::default()
        }
    }

    #[test]
    fn each_rule_is_held() {
        assert_eq!(series().validate(), Ok(()));
        assert_eq!(Series::default().validate(), Ok(()));
        type Breaking = fn(&mut Series);
        let broken: [(Breaking, &str); 6] = [
            (|s| s.batch = 0, "series X: its batch is 0"),
            (|s| s.observations[1].wall_ns = f64::NAN, "the value of observation 2 is NaN"),
            (|s| s.observations[2].cpu_ns = Some(f64::INFINITY), "Cpu of observation 3 is inf"),
            (|s| s.observations[0].steal_ns = Some(f64::NEG_INFINITY), "Steal of observation 1 is -inf"),
            (|s| s.base.as_mut().unwrap().step = 0.0, "the base of clock tsc has step 0"),
            (|s| s.marks[0].end_ns = 4, "mark 1 ends at 4 ns, before its start at 5 ns"),
        ];
        for (breaking, message) in broken {
            let mut series = series();
            breaking(&mut series);
            let error = series.validate().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
