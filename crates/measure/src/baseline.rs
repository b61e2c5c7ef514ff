//! Series kept to compare later ones with: JSON of schema `vellum.baseline/1`.
//!
//! ```json
//! {"schema": "vellum.baseline/1", "label": "main, monday", "machine": {"kernel": "6.1.0", …},
//!  "series": [{"name": "alloc", "observations": {"value": [107003, …]}, …}]}
//! ```
//!
//! A baseline is the weaker comparison, and everything here says so. Rounds that ran side by side share the
//! machine's disturbances. Runs of different days do not, and the level of a machine moves between them. On
//! the machine of the trial, the same loop's low quantile had a standard deviation of 1.8 % from run to run
//! (5.6 % where it allocates), many times the scatter within either run. An interval of that scatter alone
//! would be too narrow. So the scatter from run to run is added: [`RUN_TO_RUN`], or more if the baseline
//! holds [`RUNS_TELLING`] runs of the same name and they show more.
//!
//! The absolute figure is compared, a low quantile, because it is the one that repeats from run to run.
//!
//! Invariants: a baseline names its machine, where it is known; a series' own machine takes precedence over
//! the baseline's. It has no field for a revision: the label is the caller's.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::compare::alike;
use crate::dependence::spread_factor;
use crate::order_check::quotient;
use crate::{
    CompareError, Difference, Estimator, Gate, Interval, Machine, Options, Series, SeriesError, resampled,
};

/// The schema that is written and read.
pub const BASELINE_SCHEMA: &str = "vellum.baseline/1";
/// The least standard deviation (as a logarithm) of the same thing's absolute figure from run to run.
pub const RUN_TO_RUN: f64 = 0.02;
/// From this many runs on, a baseline's own scatter from run to run is used.
pub const RUNS_TELLING: usize = 3;

/// How many standard deviations hold 95 %.
const NORMAL_95: f64 = 1.96;

/// Series to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// Its name, chosen by its author.
    pub label: String,
    /// The machine it was measured on.
    pub machine: Option<Machine>,
    /// What was measured; several series of one name are several runs.
    pub series: Vec<Series>,
}

/// Why a baseline could not be written, read, or compared with.
#[derive(Debug, Error)]
pub enum BaselineError {
    /// The input or output failed.
    #[error("cannot read or write a baseline: {0}")]
    Io(#[from] io::Error),
    /// No JSON, or none of a baseline.
    #[error("this is no baseline in JSON: {0}")]
    Invalid(#[from] serde_json::Error),
    /// A document of another kind.
    #[error(
        "the document's schema is {found:?}, not {BASELINE_SCHEMA:?}; was it written by another program or version?"
    )]
    Schema {
        /// What it says it is.
        found: String,
    },
    /// A series that could not be read back.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// Nothing of this name.
    #[error("baseline {label} holds no series {name:?}; it holds: {held}")]
    Missing {
        /// The baseline.
        label: String,
        /// The series that was looked for.
        name: String,
        /// What there is.
        held: String,
    },
    /// Two series that cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
}

/// What makes a comparison with a baseline weaker, or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weakness {
    /// It always is.
    Unpaired,
    /// It does not say on what it was measured.
    NoMachine,
    /// It was measured on another machine, or on this one in another state.
    Machine(Difference),
    /// Another clock took the times.
    Clock {
        /// Then.
        then: Option<String>,
        /// Now.
        now: Option<String>,
    },
    /// Operations were timed in other batches.
    Batch {
        /// Then.
        then: u64,
        /// Now.
        now: u64,
    },
}

/// A sentence for people.
impl std::fmt::Display for Weakness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        match self {
            Self::Unpaired => write!(
                f,
                "the baseline ran at another time, not side by side: the interval has room for a machine that changed its \
                 pace in between, and small differences need a run of both"
            ),
            Self::NoMachine => write!(f, "the baseline does not say on which machine it was measured"),
            Self::Machine(difference) => write!(
                f,
                "the baseline was measured on another machine: {} was {}, is {}",
                difference.field,
                known(&difference.first),
                known(&difference.second)
            ),
            Self::Clock { then, now } => {
                write!(
                    f,
                    "the baseline was measured by another clock: was {}, is {}",
                    known(then),
                    known(now)
                )
            }
            Self::Batch { then, now } => {
                write!(f, "the baseline was measured in other batches: {then} operations at once, now {now}")
            }
        }
    }
}

/// A series against a baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct AgainstBaseline {
    /// Now over then: above 1 where it takes longer now.
    pub ratio: Interval,
    /// The absolute figure then, in the unit of the series: the geometric mean of the runs' if there are
    /// several.
    pub then: Interval,
    /// The absolute figure now.
    pub now: Interval,
    /// How many runs the baseline holds of it.
    pub runs: usize,
    /// How far a run may be from another (95 %, as a logarithm), as used here.
    pub run_to_run: f64,
    /// How many observations there are now.
    pub observations: usize,
    /// What a reader must know.
    pub weaknesses: Vec<Weakness>,
}

impl AgainstBaseline {
    /// Whether it is now slower than allowed: 1.02 allows two per cent.
    #[must_use]
    pub fn gate(&self, allowed: f64) -> Gate {
        Gate::of(self.ratio, None, None, allowed)
    }
}

impl Baseline {
    /// Writes it.
    ///
    /// # Errors
    /// If the output fails, or a series is not [valid](Series::validate).
    pub fn write(&self, out: &mut impl Write) -> Result<(), BaselineError> {
        self.series.iter().try_for_each(Series::validate)?;
        let document = DocumentOut {
            schema: BASELINE_SCHEMA,
            label: &self.label,
            machine: self.machine.as_ref(),
            series: &self.series,
        };
        serde_json::to_writer(&mut *out, &document).map_err(|error| match error.io_error_kind() {
            Some(kind) => BaselineError::Io(kind.into()),
            None => BaselineError::Invalid(error),
        })?;
        out.write_all(b"\n")?;
        Ok(())
    }

    /// Reads one.
    ///
    /// # Errors
    /// If the input fails, is not JSON, or not of this schema, or holds something that is no series.
    pub fn read(mut input: impl Read) -> Result<Self, BaselineError> {
        #[derive(Deserialize)]
        struct Named {
            schema: String,
        }
        let mut text = String::new();
        input.read_to_string(&mut text)?;
        // Asked first, alone: a document of another schema should be called that, not a faulty one of ours.
        let Named { schema } = serde_json::from_str(&text)?;
        if schema != BASELINE_SCHEMA {
            return Err(BaselineError::Schema { found: schema });
        }
        let DocumentIn { label, machine, series } = serde_json::from_str(&text)?;
        Ok(Self { label, machine, series })
    }

    /// The series of this name, at least one.
    ///
    /// # Errors
    /// [`BaselineError::Missing`] if there is none.
    pub fn runs_of(&self, name: &str) -> Result<Vec<&Series>, BaselineError> {
        let runs: Vec<&Series> = self.series.iter().filter(|series| series.name == name).collect();
        if runs.is_empty() {
            let mut held: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
            held.dedup();
            let (label, name) = (self.label.clone(), name.to_owned());
            return Err(BaselineError::Missing { label, name, held: held.join(", ") });
        }
        Ok(runs)
    }

    /// Compares a series with those of its name, by the absolute figures of the options' share.
    ///
    /// `machine` is the one of today; a series that names its own uses that instead.
    ///
    /// # Errors
    /// If the baseline has no series of its name, the two hold different things, or a value is no positive
    /// time.
    pub fn compare(
        &self,
        now: &Series,
        machine: Option<&Machine>,
        options: &Options,
    ) -> Result<AgainstBaseline, BaselineError> {
        let runs = self.runs_of(&now.name)?;
        let first = runs[0];
        let figures: Result<Vec<Interval>, BaselineError> = runs
            .iter()
            .map(|run| {
                alike(run, now)?;
                Ok(low("the baseline", run, options)?)
            })
            .collect();
        let figures = figures?;
        let (then, figure) = (together(&figures), low("now", now, options)?);
        // One run of now, and the mean of those of then.
        let run_to_run = run_to_run(&figures) * (1.0 + 1.0 / figures.len() as f64).sqrt();
        let moves = Interval { estimate: 0.0, low: -run_to_run, high: run_to_run }.exp();
        Ok(AgainstBaseline {
            ratio: quotient(quotient(figure, then), moves),
            then,
            now: figure,
            runs: figures.len(),
            run_to_run,
            observations: now.observations.len(),
            weaknesses: self.weaknesses(first, now, machine),
        })
    }

    fn weaknesses(&self, then: &Series, now: &Series, machine: Option<&Machine>) -> Vec<Weakness> {
        let mut found = vec![Weakness::Unpaired];
        match (then.machine.as_ref().or(self.machine.as_ref()), now.machine.as_ref().or(machine)) {
            (Some(was), Some(is)) => found.extend(was.differences(is).into_iter().map(Weakness::Machine)),
            _ => found.push(Weakness::NoMachine),
        }
        if then.clock != now.clock {
            found.push(Weakness::Clock { then: then.clock.clone(), now: now.clock.clone() });
        }
        if then.batch != now.batch {
            found.push(Weakness::Batch { then: then.batch, now: now.batch });
        }
        found
    }
}

#[derive(Serialize)]
struct DocumentOut<'a> {
    schema: &'static str,
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<&'a Machine>,
    series: &'a [Series],
}

#[derive(Deserialize)]
struct DocumentIn {
    label: String,
    machine: Option<Machine>,
    series: Vec<Series>,
}

/// A series' absolute figure. `when` names the series in an error.
fn low(when: &'static str, series: &Series, options: &Options) -> Result<Interval, CompareError> {
    let walls = series.walls();
    if let Some(at) = walls.iter().position(|value| !(value.is_finite() && *value > 0.0)) {
        return Err(CompareError::NotPositive { arm: when, round: at + 1, value: walls[at] });
    }
    let estimator = Estimator::Quantile(options.low_share);
    resampled(&walls, estimator, options.resamples, options.seed).ok_or(CompareError::NoRounds)
}

/// The runs' geometric mean, and that of the ends of their intervals.
fn together(figures: &[Interval]) -> Interval {
    let mean =
        |of: fn(&Interval) -> f64| figures.iter().map(|one| of(one).ln()).sum::<f64>() / figures.len() as f64;
    Interval { estimate: mean(|one| one.estimate), low: mean(|one| one.low), high: mean(|one| one.high) }
        .exp()
}

/// How far a run may be from another (95 %, as a logarithm): the scatter of these runs if there are enough of
/// them, but at least [`RUN_TO_RUN`].
fn run_to_run(figures: &[Interval]) -> f64 {
    let expected = NORMAL_95 * RUN_TO_RUN;
    if figures.len() < RUNS_TELLING {
        return expected;
    }
    let freedom = figures.len() as f64 - 1.0;
    let mean = together(figures).estimate.ln();
    let squares: f64 = figures.iter().map(|figure| (figure.estimate.ln() - mean).powi(2)).sum();
    (NORMAL_95 * (spread_factor(freedom) * squares / freedom).sqrt()).max(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;
    use crate::machine::tests::full;
    use crate::noise::Noise;

    fn series(name: &str, level: f64, seed: u64) -> Series {
        let mut noise = Noise::new(seed);
        let values: Vec<f64> = (0..200).map(|_| level * (1.0 + 0.01 * noise.exponential())).collect();
        Series::plain(name, "Time", Unit::Nanoseconds, values)
    }

    fn baseline(series: Vec<Series>) -> Baseline {
        Baseline { label: "monday".into(), machine: Some(full()), series }
    }

    fn against(base: &Baseline, now: &Series) -> AgainstBaseline {
        base.compare(now, Some(&full()), &Options::default()).unwrap()
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let base =
            baseline(vec![series("x", 100.0, 1), Series { machine: Some(full()), ..series("y", 7.5, 2) }]);
        let mut bytes = Vec::new();
        base.write(&mut bytes).unwrap();
        assert!(bytes.starts_with(br#"{"schema":"vellum.baseline/1","label":"monday","machine":{"#));
        assert_eq!(Baseline::read(&bytes[..]).unwrap(), base);
        let bare = Baseline { machine: None, ..baseline(Vec::new()) };
        let mut bytes = Vec::new();
        bare.write(&mut bytes).unwrap();
        assert_eq!(Baseline::read(&bytes[..]).unwrap(), bare);
    }

    #[test]
    fn other_documents_are_refused() {
        let read = |text: &str| Baseline::read(text.as_bytes()).unwrap_err().to_string();
        assert!(read(r#"{"schema": "vellum.observations/1"}"#).contains("another program or version"));
        assert!(read(r#"{"schema": "vellum.baseline/1"}"#).contains("label"));
        assert!(read("BASE 1 2 3").contains("no baseline"));
        let nan = baseline(vec![Series::plain("x", "Time", Unit::Nanoseconds, [f64::NAN])]);
        assert!(matches!(nan.write(&mut Vec::new()), Err(BaselineError::Series(_))));
    }

    #[test]
    fn what_is_slower_by_much_fails_and_by_little_does_not() {
        let base = baseline(vec![series("x", 100.0, 1)]);
        let slower = against(&base, &series("x", 120.0, 2));
        assert!((slower.ratio.estimate - 1.2).abs() < 0.005 && slower.gate(1.02).failed(), "{slower:?}");
        let little = against(&base, &series("x", 104.0, 3));
        assert!(!little.gate(1.02).failed(), "a run's level moves by as much: {little:?}");
        assert!(little.gate(1.02).to_string().contains("side by side"));
        // 1.96 deviations of 2 %, of two runs, and the runs' own scatter of a tenth of a per cent.
        let half = (little.ratio.high / little.ratio.low).ln() / 2.0;
        assert!((half / (1.96 * 0.02 * 2f64.sqrt()) - 1.0).abs() < 0.01, "{half}");
    }

    #[test]
    fn runs_of_one_name_show_how_far_they_are_apart() {
        let levels = [100.0, 90.0, 112.0, 105.0];
        let runs = levels.iter().zip(1..).map(|(level, seed)| series("x", *level, seed)).collect();
        let found = against(&baseline(runs), &series("x", 130.0, 9));
        assert_eq!(found.runs, 4);
        // The deviation of the levels' logarithms is 0.093; Student's factor for three degrees of freedom
        // 3.182.
        assert!(
            (found.run_to_run / (0.0929 * 3.182 * 1.25f64.sqrt()) - 1.0).abs() < 0.02,
            "{}",
            found.run_to_run
        );
        assert!(!found.gate(1.02).failed());
        assert!((found.then.estimate / 101.5 - 1.0).abs() < 0.005, "{:?}", found.then);
    }

    #[test]
    fn each_difference_is_told() {
        let base = baseline(vec![series("x", 100.0, 1)]);
        let now = Series { clock: Some("tsc".into()), batch: 10, ..series("x", 1000.0, 2) };
        let other = Machine { hz: Some(1000), turbo: None, ..full() };
        let found = base.compare(&now, Some(&other), &Options::default()).unwrap();
        let text: Vec<String> = found.weaknesses.iter().map(ToString::to_string).collect();
        assert_eq!(text.len(), 5, "{text:?}");
        for (line, part) in text.iter().zip([
            "not side by side",
            "hz was 250, is 1000",
            "turbo was false, is unknown",
            "another clock: was unknown, is tsc",
            "1 operations at once, now 10",
        ]) {
            assert!(line.contains(part), "{part:?} is not in {line:?}");
        }
        let nowhere = base.compare(&now, None, &Options::default()).unwrap();
        assert!(nowhere.weaknesses.contains(&Weakness::NoMachine));
    }

    #[test]
    fn what_cannot_be_compared_is_said() {
        let base = baseline(vec![series("x", 100.0, 1), series("x", 101.0, 2), series("y", 5.0, 3)]);
        let error = |now: &Series| base.compare(now, None, &Options::default()).unwrap_err().to_string();
        assert!(error(&series("z", 1.0, 1)).ends_with("it holds: x, y"));
        assert!(error(&Series::plain("x", "Time", Unit::Bytes, [1.0])).contains("compare like with like"));
        assert!(
            error(&Series::plain("x", "Time", Unit::Nanoseconds, [1.0, -1.0]))
                .contains("round 2 of arm now is -1")
        );
        assert!(error(&Series::plain("x", "Time", Unit::Nanoseconds, [])).contains("no rounds"));
    }
}
