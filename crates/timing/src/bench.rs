//! Benchmark suites: many small benchmarks in one process, each written in one or two lines.
//!
//! ```
//! use vellum_timing::bench::{Options, Suite};
//!
//! let words = ["vellum", "palimpsest", "parchment"].repeat(200);
//! let mut suite = Suite::new("strings");
//! suite.case("join", || words.join(" "));
//! suite.case_with("sort", || words.clone(), |mut words| { words.sort(); words });
//!
//! let ran = suite.run(&Options { observations: 50, ..Options::default() })?;
//! for series in ran.series() {
//!     println!("{} {:?}", series.name, series.stat());
//! }
//! # Ok::<(), vellum_timing::bench::BenchError>(())
//! ```
//!
//! # A run
//!
//! ```text
//! base ─▶ for each case:  time it ▶ long enough? ─no─▶ refused, naming a batch that is long enough
//!                                    │ yes                      (or run in such batches, if allowed)
//!                                    ▼
//!                                 warm up ─▶ observe ─▶ Series
//! ```
//!
//! The base (the time of an empty timing) is measured first, and is in the result as a series named `BASE`.
//! Operations shorter than [`Base::shortest_ns`](vellum_measure::Base::shortest_ns) are refused by default. A
//! batch (many operations between two readings of the clock) would answer another question: with caches and
//! predictors warm, each operation is faster than a single call.
//!
//! Cases run one after the other, so the figures of two cases may differ because the machine changed in
//! between. To compare two operations, use a duel (`vellum-experiment`).

use crate::clock::{BASE_COUNT, Clock, ClockError, ClockKind, measure_base_on};
use crate::marks;
use crate::record::{Detail, RecordError, Recorder};
use std::fmt;
use std::time::{Duration, Instant};
use vellum_measure::{Base, Series, Unit};

/// The most operations in an observation.
pub const BATCH_MAX: u64 = 1 << 24;
/// The most operations in an observation if each has its own input, because all inputs exist at once.
pub const BATCH_OF_INPUTS_MAX: u64 = 1 << 12;
/// The observations that gauge the length of a case; the shortest counts.
const GAUGES: usize = 15;
/// A case this long is gauged by a single observation.
const GAUGED_ONCE: Duration = Duration::from_millis(10);
/// A batch is long enough for gauging if it lasts this many of the clock's shortest observations.
const GAUGE_SHORTEST: f64 = 10.0;
/// The time of observations between two checks of the elapsed time.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The treatment of operations that are too short for the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Batching {
    /// Refuse the operation, and report the batch that is long enough.
    #[default]
    Refuse,
    /// Choose the batch automatically, as large as needed.
    Auto,
    /// Use this batch for every operation.
    Of(u64),
}

/// Options of a suite.
#[derive(Clone, Debug)]
pub struct Options {
    /// The clock; if `None`, the [best](Clock::best) one.
    pub clock: Option<ClockKind>,
    /// The facts recorded beside the time.
    pub detail: Detail,
    /// The number of observations of each case.
    pub observations: usize,
    /// A case ends early after this time, with the observations made so far.
    pub time: Duration,
    /// The time that each case runs before it is observed.
    pub warm_up: Duration,
    /// The treatment of operations too short for the clock.
    pub batching: Batching,
    /// Run only cases whose names contain this.
    pub only: Option<String>,
    /// Hold collectors off during the suite (see [`marks::hold`]).
    pub hold_collectors: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            clock: None,
            detail: Detail::Full,
            observations: 1000,
            time: Duration::from_secs(3),
            warm_up: Duration::from_millis(50),
            batching: Batching::Refuse,
            only: None,
            hold_collectors: false,
        }
    }
}

/// Errors that keep a run from starting.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BenchError {
    /// The clock is not available.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The recorder is not available.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The batch is zero or too large.
    #[error("a batch of {0}: use 1 to {BATCH_MAX}")]
    Batch(u64),
    /// The operation is too short to be timed alone.
    #[error(transparent)]
    TooShort(#[from] TooShort),
}

/// An operation too short for the clock.
#[derive(Debug, Clone, PartialEq)]
pub struct TooShort {
    /// The name of the case.
    pub name: String,
    /// About the time of the operation, in nanoseconds; 0 if it is too short to measure.
    pub operation_ns: f64,
    /// The shortest time that the clock can measure, in nanoseconds.
    pub shortest_ns: f64,
    /// A batch that is long enough.
    pub batch: u64,
}

impl std::error::Error for TooShort {}

impl fmt::Display for TooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = |value| Unit::Nanoseconds.scaled(value);
        let (name, takes, shortest) = (&self.name, ns(self.operation_ns), ns(self.shortest_ns));
        write!(f, "{name} takes about {takes}, and this clock times nothing shorter than {shortest}: ")?;
        write!(f, "a batch of {} would do", self.batch)?;
        if self.operation_ns < vellum_measure::OPERATION_NS_MIN {
            write!(f, " (or did the compiler leave it out? Pass its inputs through std::hint::black_box)")?;
        }
        Ok(())
    }
}

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The observations.
    Observed(Box<Series>),
    /// The operation was too short.
    Refused(TooShort),
}

/// The results of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// The empty timings, which are made first.
    pub base: Series,
    /// The outcomes of the cases that ran, in the suite's order.
    pub outcomes: Vec<Outcome>,
}

impl Ran {
    /// The series of the observed cases.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Observed(series) => Some(&**series),
            Outcome::Refused(_) => None,
        })
    }

    /// The cases that were refused.
    pub fn refused(&self) -> impl Iterator<Item = &TooShort> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Observed(_) => None,
            Outcome::Refused(refused) => Some(refused),
        })
    }
}

/// Makes this number of observations with the recorder.
type Observe<'a> = dyn FnMut(&mut Recorder, usize) + 'a;

/// A named operation to time.
struct Case<'a> {
    name: String,
    batch_max: u64,
    observe: Box<Observe<'a>>,
}

/// Named operations to time.
pub struct Suite<'a> {
    name: String,
    cases: Vec<Case<'a>>,
}

impl fmt::Debug for Suite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite").field("name", &self.name).field("cases", &self.names()).finish()
    }
}

impl<'a> Suite<'a> {
    /// A suite without cases.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Suite { name: name.into(), cases: Vec::new() }
    }

    /// Adds an operation. Its result is passed through `black_box` and dropped within the timing.
    pub fn case<R>(&mut self, name: impl Into<String>, mut operation: impl FnMut() -> R + 'a) -> &mut Self {
        self.cases.push(Case {
            name: name.into(),
            batch_max: BATCH_MAX,
            observe: Box::new(move |recorder, times| recorder.repeat(times, &mut operation)),
        });
        self
    }

    /// Adds an operation on inputs that are made, and results that are dropped, outside of the timing.
    pub fn case_with<I, R>(
        &mut self,
        name: impl Into<String>,
        mut input: impl FnMut() -> I + 'a,
        mut operation: impl FnMut(I) -> R + 'a,
    ) -> &mut Self {
        self.cases.push(Case {
            name: name.into(),
            batch_max: BATCH_OF_INPUTS_MAX,
            observe: Box::new(move |recorder, times| {
                for _ in 0..times {
                    recorder.time_with(&mut input, &mut operation);
                }
            }),
        });
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cases' names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.cases.iter().map(|case| case.name.as_str()).collect()
    }

    /// Runs all cases, or those chosen.
    ///
    /// # Errors
    /// If a clock, or memory for the observations, is not available. A case that is too short is an outcome.
    pub fn run(&mut self, options: &Options) -> Result<Ran, BenchError> {
        let clock = options.clock.map_or_else(Clock::best, Clock::open)?;
        if let Batching::Of(batch) = options.batching
            && !(1..=BATCH_MAX).contains(&batch)
        {
            return Err(BenchError::Batch(batch));
        }
        let mut base = measure_base_on(&clock, BASE_COUNT)?;
        base.labels.push(format!("suite={}", self.name));
        base.machine = Some(crate::machine::read());
        let _held = options.hold_collectors.then(marks::hold);
        let chosen = |case: &&mut Case| options.only.as_ref().is_none_or(|part| case.name.contains(part));
        let mut outcomes = Vec::new();
        for case in self.cases.iter_mut().filter(chosen) {
            let name = format!("{}/{}", self.name, case.name);
            outcomes.push(match case.run(name, clock, options) {
                Err(BenchError::TooShort(refused)) => Outcome::Refused(refused),
                series => Outcome::Observed(Box::new(series?)),
            });
        }
        Ok(Ran { base, outcomes })
    }
}

impl Case<'_> {
    fn run(&mut self, name: String, clock: Clock, options: &Options) -> Result<Series, BenchError> {
        let mut recorder = Recorder::new(clock, options.detail, options.observations)?;
        let operation_ns = gauge(&mut recorder, self.batch_max, &mut self.observe);
        let batch = choose_batch(options.batching, recorder.base(), operation_ns, self.batch_max, &name)?;
        recorder.set_batch(batch);
        let pace = (operation_ns * batch as f64).max(recorder.base().shortest_ns());
        let until = |time: Duration, recorder: &mut Recorder, case: &mut Self| {
            let began = Instant::now();
            while began.elapsed() < time && recorder.left() > 0 {
                let at_once = (BETWEEN_LOOKS.as_nanos() as f64 / pace) as usize;
                (case.observe)(recorder, at_once.clamp(1, recorder.left()));
            }
        };
        until(options.warm_up, &mut recorder, self);
        recorder.forget();
        // At least one observation is made, however short the time.
        (self.observe)(&mut recorder, 1);
        until(options.time, &mut recorder, self);
        Ok(recorder.finish(&name))
    }
}

/// About the time of an operation, in nanoseconds: the shortest of some observations, in batches that grow
/// until one is long enough for the clock. The result is 0 if even the largest is too short. The recorder has
/// no observations afterwards.
pub fn gauge(recorder: &mut Recorder, batch_max: u64, observe: &mut Observe<'_>) -> f64 {
    let enough = recorder.base().shortest_ns() * GAUGE_SHORTEST;
    let base = recorder.base().min;
    let mut batch = 1;
    loop {
        recorder.set_batch(batch);
        let began = Instant::now();
        observe(recorder, 1);
        if began.elapsed() < GAUGED_ONCE {
            observe(recorder, GAUGES.min(recorder.left()));
        }
        let walls = (0..recorder.count()).filter_map(|index| recorder.wall_ns(index));
        let shortest = walls.min_by(f64::total_cmp).unwrap_or(0.0) - base;
        if shortest >= enough || batch >= batch_max {
            recorder.set_batch(1);
            return (shortest / batch as f64).max(0.0);
        }
        batch = (batch * 4).min(batch_max);
    }
}

/// The batch of an operation of this length, or its refusal.
pub fn choose_batch(
    batching: Batching,
    base: &Base,
    operation_ns: f64,
    batch_max: u64,
    name: &str,
) -> Result<u64, TooShort> {
    let refusal =
        |batch| TooShort { name: name.to_owned(), operation_ns, shortest_ns: base.shortest_ns(), batch };
    match (batching, base.batch_for(operation_ns)) {
        (Batching::Of(batch), _) => Ok(batch.clamp(1, batch_max)),
        (_, None) => Ok(1),
        (Batching::Auto, Some(batch)) if batch <= batch_max => Ok(batch),
        (_, Some(batch)) => Err(refusal(batch)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn quick() -> Options {
        Options {
            clock: Some(ClockKind::Monotonic),
            observations: 20,
            warm_up: Duration::from_millis(1),
            ..Options::default()
        }
    }

    fn work() -> u64 {
        (0..black_box(20_000u64)).fold(1, |sum, i| black_box(sum ^ i.wrapping_mul(sum)))
    }

    #[test]
    fn a_suite_is_a_few_lines() {
        let data = [3u32, 1, 2].repeat(2000);
        let mut suite = Suite::new("test");
        suite.case("work", work);
        suite.case_with(
            "sort",
            || data.clone(),
            |mut data| {
                data.sort_unstable();
                data
            },
        );
        assert_eq!(suite.names(), ["work", "sort"]);
        let ran = suite.run(&quick()).unwrap();
        let names: Vec<&str> = ran.series().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["test/work", "test/sort"]);
        assert!(ran.series().all(|series| series.observations.len() == 20 && series.batch == 1));
        assert_eq!((ran.base.name.as_str(), ran.base.observations.len()), ("BASE", BASE_COUNT));
        assert_eq!(ran.base.label("suite"), Some("test"));
    }

    #[test]
    fn short_operations_are_refused_with_a_batch() {
        let mut number = 1u64;
        let mut suite = Suite::new("test");
        suite.case("add", || {
            number = black_box(number) + 1;
            number
        });
        let ran = suite.run(&quick()).unwrap();
        let refused = ran.refused().next().expect("an addition is no operation to time alone").clone();
        assert!(refused.batch >= 2 && refused.operation_ns < refused.shortest_ns, "{refused:?}");
        let text = refused.to_string();
        assert!(text.contains("test/add") && text.contains(&format!("a batch of {} would", refused.batch)));
        for batching in [Batching::Auto, Batching::Of(refused.batch)] {
            let ran = suite.run(&Options { batching, ..quick() }).unwrap();
            assert!(ran.series().next().is_some_and(|series| series.batch >= 2), "{batching:?}");
        }
    }

    #[test]
    fn cases_are_chosen_by_name_and_ended_by_time() {
        let mut suite = Suite::new("test");
        suite.case("alpha", work).case("beta", || std::thread::sleep(Duration::from_millis(3)));
        let options = Options { only: Some("bet".into()), time: Duration::from_millis(20), ..quick() };
        let ran = suite.run(&options).unwrap();
        let series: Vec<&Series> = ran.series().collect();
        assert_eq!(series.len(), 1);
        assert!((1..20).contains(&series[0].observations.len()), "{}", series[0].observations.len());
    }

    #[test]
    fn impossible_options_are_refused() {
        let mut suite = Suite::new("test");
        let batch = |batch| Options { batching: Batching::Of(batch), ..quick() };
        assert_eq!(suite.run(&batch(0)), Err(BenchError::Batch(0)));
        assert!(suite.run(&batch(BATCH_MAX + 1)).is_err());
        suite.case("work", work);
        let none = Options { observations: 0, ..quick() };
        assert_eq!(suite.run(&none), Err(BenchError::Record(RecordError::Capacity(0))));
    }

    #[test]
    fn an_optimised_away_operation_is_suspected() {
        let refused = TooShort { name: "x".into(), operation_ns: 0.0, shortest_ns: 120.0, batch: 1200 };
        assert!(refused.to_string().contains("black_box"));
    }
}
