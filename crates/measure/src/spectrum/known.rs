//! Frequencies with a known source, such as the kernel's tick.
//!
//! A beat (a periodic disturbance) is reported with its source, such as the kernel's tick, if its frequency
//! matches a known one. Known frequencies come from outside: the kernel's `CONFIG_HZ`, and the rate at which
//! the marks of a collector or an allocator begin.
//!
//! A beat matches a frequency if they differ by less than [`MATCH_TOLERANCE`]. A beat also matches at a
//! small multiple or fraction of a frequency: at every second tick, or several times per tick. The tolerance
//! is then the narrower [`MULTIPLE_TOLERANCE`], because one of many ratios is always close by chance.

use std::fmt;

use crate::{Mark, MarkCause, median};

/// The largest distance, as a share, between a beat and a known frequency that it matches.
pub const MATCH_TOLERANCE: f64 = 0.01;

/// The largest distance, as a share, between a beat and a multiple or part of a known frequency.
pub const MULTIPLE_TOLERANCE: f64 = 0.001;

/// The largest multiple of a known frequency, and the largest divisor of one, that are recognised.
const MULTIPLE_MAX: u32 = 4;
const PART_MAX: u32 = 8;

/// The least number of marks of one cause for a rate.
const MARKS_MIN: usize = 3;

/// A source of disturbances and how often it comes.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The name in reports.
    pub name: String,
    /// The frequency, in cycles per second.
    pub hz: f64,
    /// True for the kernel's tick.
    pub tick: bool,
}

/// The known source that a beat matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The source.
    pub known: Known,
    /// The beat comes `times` times …
    pub times: u32,
    /// … in every `every` cycles of the source: 1 and 1 if they are the same.
    pub every: u32,
}

impl Known {
    /// The kernel's tick, by its `CONFIG_HZ`.
    #[must_use]
    pub fn tick(config_hz: u32) -> Self {
        Self { name: "kernel tick".to_owned(), hz: f64::from(config_hz), tick: true }
    }

    /// Another source, with `hz` cycles per second.
    #[must_use]
    pub fn new(name: impl Into<String>, hz: f64) -> Self {
        Self { name: name.into(), hz, tick: false }
    }

    /// For each cause with at least three marks, the rate at which its marks begin (by the median interval).
    #[must_use]
    pub fn from_marks(marks: &[Mark]) -> Vec<Self> {
        let mut causes: Vec<&MarkCause> = Vec::new();
        for mark in marks {
            if !causes.contains(&&mark.cause) {
                causes.push(&mark.cause);
            }
        }
        let rate = |cause: &MarkCause| {
            let mut starts: Vec<u64> =
                marks.iter().filter(|mark| mark.cause == *cause).map(|mark| mark.start_ns).collect();
            starts.sort_unstable();
            let intervals: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
            let interval =
                median(&intervals).filter(|interval| starts.len() >= MARKS_MIN && *interval > 0.0)?;
            let name = if cause.is_collection() { format!("{cause} collection") } else { cause.to_string() };
            Some(Self::new(name, 1e9 / interval))
        };
        causes.into_iter().filter_map(rate).collect()
    }
}

impl Match {
    /// The source that matches a beat of `hz` ± `error`: the same frequency if one is near, else the simplest
    /// ratio; `None` if nothing fits.
    #[must_use]
    pub fn find(hz: f64, error: f64, known: &[Known]) -> Option<Self> {
        let off = |times: u32, every: u32, source: &Known| {
            (hz * f64::from(every) / (f64::from(times) * source.hz) - 1.0).abs()
        };
        let slack = 2.0 * error / hz;
        let same = known.iter().filter(|source| off(1, 1, source) <= MATCH_TOLERANCE.max(slack));
        let same = same.min_by(|a, b| off(1, 1, a).total_cmp(&off(1, 1, b))).map(|source| (1, 1, source));
        let parts = (2..=PART_MAX).map(|every| (1, every)).chain((2..=MULTIPLE_MAX).map(|times| (times, 1)));
        let mut ratios: Vec<(u32, u32)> = parts.collect();
        ratios.sort_by_key(|(times, every)| times * every);
        let mut related =
            ratios.into_iter().flat_map(|(t, e)| known.iter().map(move |source| (t, e, source)));
        let (times, every, source) =
            same.or_else(|| related.find(|(t, e, s)| off(*t, *e, s) <= MULTIPLE_TOLERANCE))?;
        Some(Self { known: source.clone(), times, every })
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.times, self.every) {
            (1, 1) => write!(f, "{}", self.known.name),
            (1, 2) => write!(f, "every 2nd {}", self.known.name),
            (1, 3) => write!(f, "every 3rd {}", self.known.name),
            (1, every) => write!(f, "every {every}th {}", self.known.name),
            (times, _) => write!(f, "{times} times per {}", self.known.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(hz: f64, known: &[Known]) -> Option<String> {
        Match::find(hz, 0.001, known).map(|found| found.to_string())
    }

    #[test]
    fn the_nearest_source_is_named() {
        let known = [Known::new("cycle", 251.5), Known::tick(250), Known::new("frame", 60.0)];
        assert_eq!(found(250.3, &known).unwrap(), "kernel tick");
        assert_eq!(found(251.4, &known).unwrap(), "cycle");
        assert_eq!(found(97.0, &known), None);
        assert_eq!(found(97.0, &[]), None);
        assert!(Match::find(249.9, 0.0, &known).unwrap().known.tick);
    }

    #[test]
    fn simple_ratios_are_named_and_others_not() {
        let known = [Known::tick(250)];
        for (hz, want) in [
            (125.0, Some("every 2nd kernel tick")),
            (83.333, Some("every 3rd kernel tick")),
            (62.5, Some("every 4th kernel tick")),
            (1000.0, Some("4 times per kernel tick")),
            (125.3, None),
            (375.0, None),
            (25.0, None),
        ] {
            assert_eq!(found(hz, &known).as_deref(), want, "{hz} Hz");
        }
    }

    #[test]
    fn marks_give_their_rate() {
        let mark = |start_ns, cause| Mark { start_ns, end_ns: start_ns + 5, cause };
        let mut marks: Vec<Mark> = (0..5).map(|i| mark(i * 10_000_000, MarkCause::Minor)).collect();
        marks.extend([mark(7, MarkCause::Major), mark(900, MarkCause::Major)]);
        marks.extend((0..3).map(|i| mark(i * 1_000_000, MarkCause::Other("flush".into()))));
        let known = Known::from_marks(&marks);
        assert_eq!(known, [Known::new("minor collection", 100.0), Known::new("flush", 1000.0)]);
    }
}
