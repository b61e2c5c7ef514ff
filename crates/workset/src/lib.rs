//! Working sets: the theory of how much memory a program needs, and estimates from given counts or traces.
//!
//! Programs do not need all their pages all the time. With a *window* T, a program keeps the pages that it
//! referenced within the last T ticks of its virtual time. The program then holds z(T) pages on average and
//! has f(T) faults per tick. Larger windows cost memory, smaller ones cost waiting: each fault takes S ticks.
//! The whole cost of a program, for each tick of work, is the space-time product
//!
//! X(T) = z + S·f·z
//!
//! which is least somewhere between the extremes, at the program's *knee*. Most of this crate serves to find
//! this knee, from counts of a running program or from a trace.
//!
//! ```text
//!   cumulative counts ▶ cycle::at_windows ─▶ History
//!   trace ─▶ trace::Trace ─▶ Intervals ────▶ History, Curve
//!                                             │
//!                      ┌──────────────────────┴───────────┬─────────────────────┐
//!                      ▼                                  ▼                     ▼
//!             knee(curve, demand)                spread(history, …)     history.advice(S, 2 %)
//!             "knee" · "needs nothing            its 95 % interval      the recommended memory, and
//!             more" · "takes all it is given"                           the slowdown under less
//! ```
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | tick | unit of virtual time: an instruction, a reference, or a nanosecond of *user* CPU time |
//! | W(t, T), w(t, T) | the working set: the pages referenced in the T ticks before t; their number |
//! | z(T), f(T), e | the mean of w, in pages; faults per tick, the slope of z; the lifetime 1/f |
//! | S | the delay of a fault, in ticks: measured for the job and the device |
//! | X, Y | space-time products, in pages: X in total, Y for waiting alone ([`Criterion`]) |
//! | PE-knee, LT-knee | the windows where X and where Y is least |
//!
//! # From a trace to advice
//!
//! ```
//! use vellum_random::Rng;
//! use vellum_workset::{Answer, Demand, Intervals, Page, Ticks, knee};
//!
//! // A program of 400 pages: half of the references stay on their page, one in a hundred thousand leaves
//! // the hundred pages that it lives in.
//! let tails: Vec<f64> = (1..400).map(|h| if h < 100 { 0.5 - 0.004 * f64::from(h) } else { 1e-5 }).collect();
//! let (mut recent, mut rng) = ((0..400).collect::<Vec<u64>>(), Rng::new(1));
//! let mut reference = || {
//!     let chance = rng.unit();
//!     recent[..=tails.partition_point(|tail| *tail > chance)].rotate_right(1);
//!     Page(recent[0])
//! };
//!
//! let end = Ticks(1_000_000);
//! let mut intervals = Intervals::default();
//! for now in 0..1_000_000 {
//!     intervals.reference(reference(), Ticks(now));
//! }
//!
//! // A fault takes the time of a thousand references, and a wait of 2 % is accepted. The program was
//! // watched from its start.
//! let curve = intervals.curve(end).unwrap();
//! let demand = Demand { unavoidable: intervals.first_references(end), ..Demand::new(1000.0) };
//! let answer = knee(&curve, &demand);
//! let Answer::Knee(knee) = answer else { panic!("{answer:?}") };
//! assert!((90.0..115.0).contains(&knee.point.pages));
//!
//! let history = intervals.history(end).unwrap();
//! let advice = history.advice(1000.0, 0.02).unwrap();
//! assert!(history.slowdown(advice.pages * 2.0 / 3.0, 1000.0).part > 1.0, "a third less costs clearly more");
//! ```
//!
//! # Modules and types
//!
//! | to | see |
//! | --- | --- |
//! | estimate from programs | [`cycle`] |
//! | estimate from traces | [`trace`], [`Intervals`], [`Histogram`] |
//! | evaluate estimates | [`Curve`], [`History`], [`knee()`], [`spread()`], [`History::advice`], [`falling`] |
//! | compare with exact results | `lab/papers` (`model`), which also has Nishigaki's estimators |
//!
//! Everything is a pure function of its arguments and, for random draws, of a seed: no clock, no file, no
//! system call.
//!
//! # Findings
//!
//! - Virtual time is user CPU time. If it included the time of faults, faults would shorten windows, and
//!   shorter windows cause more faults ([`Ticks`]).
//! - S is an argument of every function, in ticks, and may change from sample to sample.
//! - First references count as faults: without them large windows look free ([`Intervals`]).
//! - If S is small, the least X of many programs is at almost no memory, where they thrash. A cap on S·f
//!   limits the accepted wait ([`knee()`]).
//! - A memory limit does not adapt to phases. The recommended memory is therefore not z at the knee, but the
//!   need of the hungriest stretches ([`History::advice`]).
//!
//! Sources: Nishigaki, "Experiments on the Knee Criterion in a Multiprogrammed Computer System" (1981), with
//! the equations' numbers in each file; Denning and Schwartz (1972) for curves in one pass. Each file lists
//! its departures.

pub mod cycle;
pub mod trace;

mod criterion;
mod curve;
mod hash;
mod histogram;
mod history;
mod intervals;
mod knee;
mod shape;
mod slowdown;
mod spread;
mod unit;

pub use criterion::Criterion;
pub use curve::{Curve, CurveError, Point, WINDOWS_MIN};
pub use histogram::Histogram;
pub use history::{BATCHES_MAX, History};
pub use intervals::{Intervals, SAMPLE_PAGES, SAMPLE_PAGES_MIN};
pub use knee::{Answer, CAP, DIP_MIN, Demand, EVERYTHING, Judged, NO_WAITING, SAME, knee};
pub use shape::{concave_slopes, falling};
pub use slowdown::{Advice, Slowdown};
pub use spread::{BATCHES_MIN, CONFIDENCE, DRAWS, Range, Spread, spread};
pub use unit::{Page, Ticks};
