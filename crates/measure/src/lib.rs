//! Statistics of timings: observations and their file formats, distributions, causes of outliers,
//! comparisons. The crate has no clock; `vellum-timing` does the timing.
//!
//! Timings are not normally distributed. Disturbances (interrupts, other tenants, faults, a collector) only
//! lengthen them, the level drifts, neighbouring observations resemble each other, and some disturbances are
//! periodic. The tail dominates the mean, and textbook intervals assume independence, so both mislead. This
//! crate keeps every observation, in order, with the events that happened during it. It answers three
//! questions. How are the values distributed? Why are some long? Is one program faster than another?
//!
//! ```text
//!  a clock                                                            How are the values distributed?
//!  (vellum-timing)                    ┌─▶ Layers ─▶ Modality, Steady
//!   │                                 │      │                        Why are some long?
//!   │                                 │      └────▶ Attribution ◀─ marks, counters ┐
//!   └▶ Observation ─▶ Series ─▶ walls ┼─▶ Spectrum ───── on the tick? ─────────────┘
//!       minus Base       ▲            └─▶ pictures (vellum-report)
//!   ▲                    ▼
//!   │            line, json ─▶ filter, Summary
//!   │                                                                 Is one program faster?
//!   └─ a, b, control, in rounds ─▶ Comparison ─▶ Interval ─▶ Gate
//! ```
//!
//! Everything is a pure function of its arguments and a seed, so the same seed gives the same result on
//! every machine. If there is no result (no data, a value that is not a number), functions return `None` or
//! an error. Each detector documents its rate of false alarms, and its tests check that rate. Methods taken
//! from Bates 1999, "Reliable Benchmarking with Limbo on Inferno", are marked in the files.
//!
//! # Observations
//!
//! - **sample**: values in order and five figures: n, mean, min, max, std ([`Sample`], [`Stat`]).
//! - **unit**: the unit of the values, and its form for people: `807 ns`, `8.61 ms` ([`Unit`]); **digits**
//!   formats numbers.
//! - **observation**: a timing with its processor time, faults, switches and stolen time ([`Observation`],
//!   [`Series`]).
//! - **mark**: a span in which a collector or an allocator was at work ([`Mark`]); **validity**: the checks
//!   of a series.
//! - **base**: the time of an empty timing, the clock's step, and the batch that a short operation needs
//!   ([`Base`]).
//! - **machine**: a description of the machine, and how two machines differ ([`Machine`]).
//! - **line**, **json**: series as text lines for `grep`, and as JSON. **column** has the quantities' names
//!   for both. **summary** describes a series in one line; **filter** selects parts.
//!
//! # Distribution
//!
//! - **layers**: outliers outside mean ± 2σ, removed layer by layer and numbered ([`Layers`]).
//! - **modes**: the number of modes, by the **dip** test and a taut string ([`Modality`]).
//!   **autocorrelation** gives the number of observations that are worth one independent observation;
//!   **ranks** make the test robust.
//! - **steady**: where the level changes, and from which observation on the level is steady ([`Steady`]);
//!   **segments** finds the best division.
//!
//! # Causes of long observations
//!
//! - **spectrum**: periodic disturbances, with their period, strength, cost and source
//!   ([`Spectrum`], [`Period`], [`Known`]).
//! - **attribution**: the loss of each outlier, divided among its causes to the picosecond ([`Attribution`],
//!   [`Cause`]).
//!
//! # Comparison
//!
//! - **rounds**: each arm (a compared operation) runs once per round, in a random order, so that no arm
//!   always follows the same other arm (`vellum-experiment`, with [`Rng`]).
//! - **compare**: b against a from pairs of one round, with a control ([`Comparison`]). **order_check** tests
//!   if the ratio depends on the order of the arms. **ratio** is the ratio of pairs without a control
//!   ([`paired_ratio`]).
//! - **estimator**: one figure for many values: median, trimmed mean, low quantile ([`Estimator`]);
//!   **quantile** has the definition.
//! - **dependence**, **resample**: an [`Interval`] with the stated coverage, from random blocks of
//!   neighbouring values; dependent values need longer blocks ([`Dependence`], [`resampled`]).
//! - **plan**: how many rounds to run, decided without looking at the ratio ([`Plan`]).
//! - **gate**: whether a CI build fails ([`Gate`]).
//!
//! ```
//! use vellum_measure::{Known, Layers, Spectrum, median, paired_ratio};
//!
//! let pairs = [(2.0, 1.0), (4.1, 2.0), (6.0, 3.0), (8.0, 4.0), (90.0, 5.0)];
//! let ratio = paired_ratio(&pairs, 1000, 7).unwrap();
//! assert!((ratio.estimate - 2.0).abs() < 1e-12, "one wild pair does not move it");
//! assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
//!
//! // Two seconds of operations of 100 µs; every 4 ms one of them takes 30 µs longer.
//! let wall = |i| if i % 40 == 7 { 130e3 } else { 100e3 + f64::from(i % 3) };
//! let walls: Vec<f64> = (0..20_000).map(wall).collect();
//! let starts: Vec<u64> = (0..20_000).map(|i| i * 100_000).collect();
//! assert_eq!(Layers::peel(&walls, 1).outliers().count(), 500);
//! let spectrum = Spectrum::of(&starts, &walls, &[Known::tick(250)]).unwrap();
//! let beat = &spectrum.periods[0];
//! assert!((beat.period - 0.004).abs() < 1e-6);
//! assert_eq!(beat.source.as_ref().unwrap().to_string(), "kernel tick");
//! ```

mod attribution;
mod autocorrelation;
mod base;
mod column;
mod compare;
#[cfg(test)]
mod coverage;
mod dependence;
mod digits;
mod dip;
mod estimator;
pub mod filter;
mod gate;
mod interval;
pub mod json;
mod layers;
pub mod line;
mod machine;
mod mark;
mod modes;
#[cfg(test)]
mod noise;
mod observation;
mod order_check;
mod plan;
mod quantile;
mod ranks;
mod ratio;
mod resample;
mod sample;
mod segments;
mod spectrum;
mod steady;
mod summary;
mod transform;
mod unit;
mod validity;
#[cfg(test)]
mod vectors;

pub use attribution::{
    Attribution, Cause, CauseTotal, FAULT_AMONG_MANY_NS_MAX, FAULT_NS_MAX, Outlier, Picos, SWITCH_NS_MAX,
};
pub use base::{BASES_MIN, Base, OPERATION_NS_MIN, STEPS_MIN};
pub use column::Column;
pub use compare::{
    Arms, CompareError, Comparison, Direction, LOW_SHARE, LOW_SHARE_ALLOCATING, NEGLIGIBLE, Options, Ratios,
    TELLING_FROM, TRIM_FROM, Warning,
};
pub use dependence::{CONFIDENCE, Dependence};
pub use digits::{grouped, percent, short};
pub use estimator::Estimator;
pub use gate::{Gate, Outcome};
pub use interval::Interval;
pub use layers::{LAYER_DEVIATIONS, LAYERS_MAX, LayerBounds, Layers};
pub use machine::Machine;
pub use mark::{Mark, MarkCause};
pub use modes::{MODE_SHARE_MIN, MODES_FALSE_ALARM, Modality, Mode};
pub use observation::{Observation, Series};
pub use order_check::OrderCheck;
pub use plan::{Plan, ROUNDS_MAX, ROUNDS_MIN, rounds_needed};
pub use quantile::{median, quantile};
pub use ratio::{paired_ratio, paired_ratio_by};
pub use resample::resampled;
pub use sample::{Sample, Stat, touched};
pub use spectrum::{
    BEAT_FALSE_ALARM, CYCLES_MIN, HZ_MAX, Known, MATCH_TOLERANCE, MULTIPLE_TOLERANCE, Match, PERIODS_MAX,
    Period, Spectrum,
};
pub use steady::{
    CHANGE_FALSE_ALARM, Course, LEVEL_TOLERANCE, STEADY_SHARE_MIN, STRETCH_MIN, Steady, Stretch,
};
pub use summary::Summary;
pub use unit::{Scale, Unit};
pub use validity::SeriesError;
pub use vellum_random::Rng;
