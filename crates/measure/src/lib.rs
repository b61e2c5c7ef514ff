//! Statistics of timings, without a clock.
//!
//! Timings of programs are not drawn from a bell curve. Disturbances (interrupts, other tenants, faults, a
//! collector) lie all on one side, the level itself moves, neighbouring observations resemble each other, and
//! some of what disturbs comes with a beat. Means follow the tail, textbook intervals assume independence,
//! and both mislead. So every observation is kept, in order, with what else happened inside it; and from that
//! three questions are answered: *what is it like?*, *why are some so long?* and *is this faster than that?*
//!
//! ```text
//!  a clock                                                            what is it like?
//!  (vellum-timing)                    ┌─▶ Layers ─▶ Modality, Steady
//!   │                                 │      │                        why are some so long?
//!   │                                 │      └────▶ Attribution ◀─ marks, counters ┐
//!   └▶ Observation ─▶ Series ─▶ walls ┼─▶ Spectrum ───── on the tick? ─────────────┘
//!       less Base        ▲            └─▶ pictures (vellum-report)
//!   ▲                    ▼
//!   │            line, json ─▶ filter, Summary
//!   │                                                                 is this faster than that?
//!   └─ A, A', B in rounds ─▶ Comparison ─▶ Interval ─▶ Gate
//! ```
//!
//! Everything is a pure function of its arguments and a seed: the same seed gives the same answer on every
//! machine. A function that has no answer (no data, a value that is not a number) says so with `None` or an
//! error, and never invents one. Each detector states its rate of false alarms, and its tests hold it to
//! that.
//!
//! # What is observed
//!
//! - **sample**: values in order and the five figures of the source, n, mean, min, max, std ([`Sample`],
//!   [`Stat`]).
//! - **unit**: the unit of the values, and how people like to read it: `807 ns`, `8.61 ms` ([`Unit`]);
//!   **digits** and **number** print.
//! - **observation**, **mark**: an observation with its processor time, faults, switches and stolen time, and
//!   spans in which a collector or an allocator was at work ([`Observation`], [`Mark`], [`Series`]);
//!   **validity** is the rule for what may be kept.
//! - **base**: the cost of measuring itself, the clock's step, and the batch that a too short operation needs
//!   ([`Base`]).
//! - **machine**: the machine measured on, as plain data, and where two differ ([`Machine`]).
//! - **line**, **json**: series as text that `grep` and an eye can take apart, and as JSON; **column** names
//!   the quantities once for both, **summary** is a series in one line, **filter** takes parts.
//!
//! # What it is like
//!
//! - **layers**: outliers beyond mean ± 2σ, taken off layer by layer and remembered ([`Layers`]).
//! - **modes**: whether there are several modes, by the **dip** and a taut string ([`Modality`]);
//!   **autocorrelation** finds how many observations make one independent one, by **ranks**, which make such
//!   answers robust against outliers.
//! - **steady**: where the level changes and from where on it no longer does ([`Steady`]); **segments** finds
//!   the best division.
//!
//! # Why some are so long
//!
//! - **spectrum**: beats among the disturbances, their period, strength, harmonics, cost and source
//!   ([`Spectrum`], [`Period`], [`Known`]).
//! - **attribution**: for each outlier what happened in it, and how much of all that was lost each [`Cause`]
//!   took, to the last picosecond ([`Attribution`]).
//!
//! # Whether one is faster
//!
//! - **rounds**: each arm once a round, in an order drawn anew, so that none always runs after its rival
//!   (`vellum-experiment`, with [`Rng`]).
//! - **compare**: B against A from pairs of one round, and A against itself beside it ([`Comparison`]);
//!   **order_check** asks whether another order gives another answer; **ratio** is the bare ratio of pairs
//!   ([`paired_ratio`]).
//! - **estimator**: one figure of many values: median, trimmed mean, low quantile ([`Estimator`]);
//!   **quantile** has the rule.
//! - **dependence**, **resample**: an [`Interval`] that really covers, by drawing blocks of neighbours as
//!   long as they resemble each other ([`Dependence`], [`resampled`]).
//! - **plan**: how many rounds, without looking at the answer while deciding ([`Plan`]).
//! - **gate**: a build server's answer ([`Gate`]).
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
mod number;
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
pub use digits::{percent, short};
pub use estimator::Estimator;
pub use gate::{Gate, Outcome};
pub use interval::Interval;
pub use layers::{LAYER_DEVIATIONS, LAYERS_MAX, LayerBounds, Layers};
pub use machine::Machine;
pub use mark::{Mark, MarkCause};
pub use modes::{MODE_SHARE_MIN, MODES_FALSE_ALARM, Modality, Mode};
pub use observation::{Observation, Series};
pub use order_check::OrderCheck;
pub use plan::{Next, Plan, ROUNDS_MAX, ROUNDS_MIN, Why, rounds_needed};
pub use quantile::{median, quantile};
pub use ratio::{paired_ratio, paired_ratio_by};
pub use resample::resampled;
pub use sample::{Sample, Stat};
pub use spectrum::{
    Axis, BEAT_FALSE_ALARM, CYCLES_MIN, HARMONICS_MAX, HZ_MAX, Harmonic, Known, MATCH_TOLERANCE,
    MULTIPLE_TOLERANCE, Match, PERIODS_MAX, Period, Point, Spectrum, TRACE_MAX,
};
pub use steady::{
    CHANGE_FALSE_ALARM, Course, LEVEL_TOLERANCE, STEADY_SHARE_MIN, STRETCH_MIN, Steady, Stretch,
};
pub use summary::Summary;
pub use unit::{Scale, Unit};
pub use validity::SeriesError;
pub use vellum_random::Rng;
