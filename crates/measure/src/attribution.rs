//! Attribution: divides the extra time of each outlier among known causes.
//!
//! The loss of an outlier is its wall time beyond the median of the kept observations (those in no
//! [layer](Layers) of outliers). Each cause in turn, the one with the best evidence first, takes as much of
//! the loss as it can account for. The next cause gets the rest. The lower rows of the diagram name the
//! evidence for each cause:
//!
//! ```text
//! wall ├ median, kept ┤◀──────────────────────────── lost ────────────────────────────▶│
//!                     │ marks │ stolen   │ off processor │ on it: faults,  │ unexplained
//!                     │       │          │               │ switches, tick  │
//!                       span    account    wall − cpu,     counters, phase   rest
//!                                          beyond usual
//! ```
//!
//! - **marks**: spans in which a collector or an allocator recorded that it worked; overlapping marks count
//!   once. Marks that the measured program itself made take nothing, because its work is not a disturbance;
//! - **stolen**: the time that the hypervisor reports as stolen, if it reports any;
//! - **off the processor**: wall time during which the thread's processor clock stood still, beyond the usual
//!   difference of the two clocks. An involuntary switch makes this time a preemption, a voluntary switch a
//!   wait (for a page, if there was a major fault). If both kinds occurred, the time is divided in proportion
//!   to their numbers. Without a switch, the hypervisor or an interrupt used the processor
//!   ([`Cause::Steal`]);
//! - **on the processor**: page faults beyond the usual number take up to [`FAULT_NS_MAX`] each. The limit
//!   is [`FAULT_AMONG_MANY_NS_MAX`] if their number also varies in undisturbed observations. Next, switches
//!   take up to [`SWITCH_NS_MAX`] each. The kernel tick is last, if the spectrum found one in the
//!   observation;
//! - **unexplained**: the rest.
//!
//! Invariant: times are whole picoseconds ([`Picos`]). The parts of an outlier sum exactly to its loss, and
//! the totals of all causes sum to the whole loss.
//!
//! Source: Bates 1999, "Reliable Benchmarking with Limbo on Inferno", finds the causes of outliers one after
//! the other by experiment (from "Interpreting the Results" on). Departure: here the kernel's counts and the
//! collector's marks show the causes of each outlier.

use std::fmt;

use serde::Serialize;

use crate::quantile::quantile;
use crate::{Layers, Mark, Observation, median};

/// The most that one page fault can account for, in nanoseconds: a read, or clearing a huge page in a guest.
pub const FAULT_NS_MAX: f64 = 1e6;

/// The most that one fault without a read can account for, in nanoseconds, if the number of faults varies
/// anyway: a base page that the host must back first. There, one fault more is weak evidence, and must not
/// take the cost of another cause.
pub const FAULT_AMONG_MANY_NS_MAX: f64 = 15e3;

/// The usual number of faults is at most this quantile of the kept observations.
const FAULTS_USUAL_QUANTILE: f64 = 0.99;

/// The most that one switch can account for while the thread runs, in nanoseconds: the switch itself and the
/// cold caches after it.
pub const SWITCH_NS_MAX: f64 = 50e3;

/// Time off the processor up to this quantile of the kept observations is noise of the two clocks.
const OFF_NOISE_QUANTILE: f64 = 0.99;

/// Possible causes of a long observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A page fault served without a read from storage.
    MinorFault,
    /// A page fault that waited for a read from storage.
    MajorFault,
    /// Another thread was given the processor.
    Preemption,
    /// The thread itself waited for something.
    Wait,
    /// The hypervisor or an interrupt had the processor.
    Steal,
    /// A collector worked.
    Collection,
    /// The allocator gave pages back.
    Allocator,
    /// The kernel's tick.
    Tick,
    /// No known cause.
    Unexplained,
}

/// A span of time in whole picoseconds (213 days at most).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Picos(pub u64);

/// The losses of a whole series, and their causes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attribution {
    /// The median wall time of the kept observations, in nanoseconds; time beyond it counts as lost.
    pub usual_ns: f64,
    /// The wall time of all observations together, in nanoseconds.
    pub wall_ns: f64,
    /// The loss of all outliers.
    pub lost: Picos,
    /// The outliers with a loss, in order.
    pub outliers: Vec<Outlier>,
    /// Each cause with a part of the loss, the largest first.
    pub causes: Vec<CauseTotal>,
}

/// One observation longer than the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outlier {
    /// Its place in the series, from 0.
    pub place: usize,
    /// Its loss.
    pub lost: Picos,
    /// The parts of the loss by cause, the largest first, without zeros.
    pub parts: Vec<(Cause, Picos)>,
}

/// The part of one cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CauseTotal {
    /// The cause.
    pub cause: Cause,
    /// Its part of the loss of all outliers.
    pub lost: Picos,
    /// Its share of the whole loss, 0 to 1.
    pub share: f64,
    /// The number of outliers in which it has a part.
    pub outliers: usize,
}

impl Attribution {
    /// Divides the losses of a series' outliers among their causes.
    ///
    /// `layers` are those of the observations' walls (those of [`Series::walls`](crate::Series::walls) are
    /// the same, since base and batch move no value to another layer). Observations and marks are on one
    /// clock, walls in nanoseconds. `tick` holds the places of the observations that a
    /// [`Spectrum`](crate::Spectrum) found on the kernel's beat, in any order (empty if none). Observations
    /// whose wall is not a finite number are left out.
    ///
    /// `None` if there are no kept observations, or if the layers belong to another series.
    #[must_use]
    pub fn of(observations: &[Observation], marks: &[Mark], layers: &Layers, tick: &[usize]) -> Option<Self> {
        if layers.layer_of.len() != observations.len() {
            return None;
        }
        let usual = Usual::of(observations, layers)?;
        let timeline = Timeline::new(marks);
        let mut on_tick = vec![false; observations.len()];
        tick.iter().filter(|place| **place < observations.len()).for_each(|place| on_tick[*place] = true);

        let outliers: Vec<Outlier> = layers
            .outliers()
            .filter_map(|place| {
                let observation = &observations[place];
                let lost = Picos::from_ns(observation.wall_ns - usual.wall_ns).filter(|lost| lost.0 > 0)?;
                let parts = share_out(lost, observation, &usual, &timeline, on_tick[place]);
                Some(Outlier { place, lost, parts })
            })
            .collect();
        let lost = Picos(outliers.iter().fold(0, |sum: u64, outlier| sum.saturating_add(outlier.lost.0)));
        let wall_ns = observations.iter().map(|one| one.wall_ns).filter(|wall| wall.is_finite()).sum();
        let causes = totals(&outliers, lost);
        Some(Self { usual_ns: usual.wall_ns, wall_ns, lost, outliers, causes })
    }

    /// The loss as a share of all wall time, from 0.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        if self.wall_ns > 0.0 { self.lost.ns() / self.wall_ns } else { 0.0 }
    }
}

impl Outlier {
    /// The cause with the largest part.
    #[must_use]
    pub fn cause(&self) -> Cause {
        self.parts.first().map_or(Cause::Unexplained, |(cause, _)| *cause)
    }
}

impl Cause {
    /// Every cause, in order of declaration.
    pub const ALL: [Self; 9] = [
        Self::MinorFault,
        Self::MajorFault,
        Self::Preemption,
        Self::Wait,
        Self::Steal,
        Self::Collection,
        Self::Allocator,
        Self::Tick,
        Self::Unexplained,
    ];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MinorFault => "minor fault",
            Self::MajorFault => "major fault",
            Self::Preemption => "preemption",
            Self::Wait => "wait",
            Self::Steal => "steal",
            Self::Collection => "collection",
            Self::Allocator => "allocator",
            Self::Tick => "tick",
            Self::Unexplained => "unexplained",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Picos {
    /// The nearest whole number of picoseconds, 0 for negative numbers; `None` if `ns` is not finite.
    #[must_use]
    pub fn from_ns(ns: f64) -> Option<Self> {
        ns.is_finite().then(|| Self((ns * 1e3).round() as u64))
    }

    /// In nanoseconds.
    #[must_use]
    pub fn ns(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

/// The properties of the kept observations.
struct Usual {
    wall_ns: f64,
    /// Wall less processor time: the median, and the noise above it; `None` without processor times.
    off_ns: Option<(f64, f64)>,
    minor: u32,
    /// The most that a fault beyond the usual number can account for, in nanoseconds.
    minor_ns: f64,
}

impl Usual {
    fn of(observations: &[Observation], layers: &Layers) -> Option<Self> {
        let kept = || layers.kept().map(|place| &observations[place]);
        let walls: Vec<f64> = kept().map(|one| one.wall_ns).collect();
        let minors: Vec<f64> = kept().map(|one| f64::from(one.minor)).collect();
        let offs: Vec<f64> = kept().filter_map(|one| Some(one.wall_ns - one.cpu_ns?)).collect();
        let off_ns = median(&offs).zip(quantile(&offs, OFF_NOISE_QUANTILE));
        let minor = quantile(&minors, FAULTS_USUAL_QUANTILE)?.ceil();
        let varies = minors.iter().any(|faults| *faults < minor);
        Some(Self {
            wall_ns: median(&walls)?,
            off_ns: off_ns.map(|(middle, high)| (middle, high - middle)),
            minor: minor as u32,
            minor_ns: if varies { FAULT_AMONG_MANY_NS_MAX } else { FAULT_NS_MAX },
        })
    }
}

/// Gives each cause its part of `lost`, the largest first.
fn share_out(
    lost: Picos,
    one: &Observation,
    usual: &Usual,
    marks: &Timeline,
    tick: bool,
) -> Vec<(Cause, Picos)> {
    let mut purse = Purse { left: lost, parts: Vec::new() };
    let end_ns = one.start_ns.saturating_add(one.wall_ns as u64);
    purse.pay(Cause::Collection, marks.collection.covered_ns(one.start_ns, end_ns) as f64);
    purse.pay(Cause::Allocator, marks.allocator.covered_ns(one.start_ns, end_ns) as f64);
    let stolen_ns = one.steal_ns.unwrap_or(0.0);
    purse.pay(Cause::Steal, stolen_ns);

    let switches = one.voluntary + one.involuntary;
    let off_ns = match (one.cpu_ns, usual.off_ns) {
        (Some(cpu), Some((middle, noise))) => {
            Some(one.wall_ns - cpu - middle).filter(|off| *off > noise).map_or(0.0, |off| off - stolen_ns)
        }
        // Without processor times a switch is the only evidence of time off the processor, and may account
        // for all of it.
        _ if switches > 0 => purse.left.ns(),
        _ => 0.0,
    };
    let waited = if one.major > 0 { Cause::MajorFault } else { Cause::Wait };
    if switches > 0 {
        purse.pay(waited, off_ns * f64::from(one.voluntary) / f64::from(switches));
        purse.pay(Cause::Preemption, off_ns * f64::from(one.involuntary) / f64::from(switches));
    } else {
        purse.pay(if one.major > 0 { Cause::MajorFault } else { Cause::Steal }, off_ns);
    }

    purse.pay(Cause::MajorFault, f64::from(one.major) * FAULT_NS_MAX);
    purse.pay(Cause::MinorFault, f64::from(one.minor.saturating_sub(usual.minor)) * usual.minor_ns);
    purse.pay(Cause::Preemption, f64::from(one.involuntary) * SWITCH_NS_MAX);
    purse.pay(waited, f64::from(one.voluntary) * SWITCH_NS_MAX);
    purse.pay(if tick { Cause::Tick } else { Cause::Unexplained }, f64::INFINITY);
    purse.parts.sort_by_key(|(_, part)| std::cmp::Reverse(*part));
    purse.parts
}

/// The part of a loss without a cause yet, and the parts taken so far.
struct Purse {
    left: Picos,
    parts: Vec<(Cause, Picos)>,
}

impl Purse {
    /// Gives `cause` as much as `ns`, or the rest if that is less.
    fn pay(&mut self, cause: Cause, ns: f64) {
        // The cast saturates: infinity becomes the largest number, negative numbers and NaN become 0.
        let part = Picos(((ns * 1e3).round() as u64).min(self.left.0));
        if part.0 == 0 {
            return;
        }
        self.left.0 -= part.0;
        match self.parts.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => sum.0 += part.0,
            None => self.parts.push((cause, part)),
        }
    }
}

/// The spans in which collector and allocator were at work.
struct Timeline {
    collection: Spans,
    allocator: Spans,
}

impl Timeline {
    fn new(marks: &[Mark]) -> Self {
        Self {
            collection: Spans::join(marks.iter().filter(|mark| mark.cause.is_collection())),
            allocator: Spans::join(marks.iter().filter(|mark| mark.cause.is_allocator())),
        }
    }
}

/// Ordered spans that do not touch each other.
struct Spans(Vec<(u64, u64)>);

impl Spans {
    fn join<'a>(marks: impl Iterator<Item = &'a Mark>) -> Self {
        let mut spans: Vec<(u64, u64)> = marks.map(|mark| (mark.start_ns, mark.end_ns)).collect();
        spans.sort_unstable();
        spans.dedup_by(|next, last| {
            let touch = next.0 <= last.1;
            if touch {
                last.1 = last.1.max(next.1);
            }
            touch
        });
        Self(spans)
    }

    /// The part of `start..end` that the spans cover.
    fn covered_ns(&self, start: u64, end: u64) -> u64 {
        let first = self.0.partition_point(|(_, span_end)| *span_end <= start);
        let inside = self.0[first..].iter().take_while(|(span_start, _)| *span_start < end);
        inside
            .map(|(span_start, span_end)| (*span_end).min(end).saturating_sub((*span_start).max(start)))
            .sum()
    }
}

fn totals(outliers: &[Outlier], lost: Picos) -> Vec<CauseTotal> {
    let mut causes: Vec<CauseTotal> = Cause::ALL
        .into_iter()
        .map(|cause| {
            let parts =
                || outliers.iter().flat_map(|outlier| &outlier.parts).filter(move |(of, _)| *of == cause);
            let taken = Picos(parts().fold(0, |sum: u64, (_, part)| sum.saturating_add(part.0)));
            let share = taken.0 as f64 / (lost.0 as f64).max(1.0);
            CauseTotal { cause, lost: taken, share, outliers: parts().count() }
        })
        .filter(|total| total.lost.0 > 0)
        .collect();
    causes.sort_by_key(|total| std::cmp::Reverse(total.lost));
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MarkCause, Rng};
    use proptest::prelude::*;

    const USUAL: Observation = Observation {
        start_ns: 0,
        wall_ns: 1000.0,
        cpu_ns: Some(900.0),
        minor: 1,
        major: 0,
        voluntary: 0,
        involuntary: 0,
        steal_ns: None,
    };

    /// A hundred usual observations, each starting 10 µs after the last, and then the given one.
    fn series(odd: Observation) -> Vec<Observation> {
        let mut all: Vec<Observation> =
            (0..100).map(|i| Observation { start_ns: i * 10_000, ..USUAL }).collect();
        all.push(Observation { start_ns: 1_000_000, ..odd });
        all
    }

    fn attribute(observations: &[Observation], marks: &[Mark], tick: &[usize]) -> Attribution {
        let walls: Vec<f64> = observations.iter().map(|one| one.wall_ns).collect();
        Attribution::of(observations, marks, &Layers::peel(&walls, 3), tick).unwrap()
    }

    fn parts(odd: Observation, marks: &[Mark], tick: &[usize]) -> Vec<(Cause, f64)> {
        let attribution = attribute(&series(odd), marks, tick);
        assert_eq!(attribution.outliers.len(), 1);
        attribution.outliers[0].parts.iter().map(|(cause, part)| (*cause, part.ns())).collect()
    }

    fn mark(start_ns: u64, end_ns: u64, cause: MarkCause) -> Mark {
        Mark { start_ns, end_ns, cause }
    }

    #[test]
    fn time_off_the_processor_belongs_to_the_switch() {
        let away = Observation { wall_ns: 2_001_000.0, cpu_ns: Some(20_900.0), ..USUAL };
        let preempted = Observation { involuntary: 1, ..away };
        assert_eq!(parts(preempted, &[], &[]), [(Cause::Preemption, 2_000_000.0)]);
        let waited = Observation { voluntary: 2, ..away };
        assert_eq!(parts(waited, &[], &[]), [(Cause::Wait, 2_000_000.0)]);
        let paged = Observation { voluntary: 1, major: 1, ..away };
        assert_eq!(parts(paged, &[], &[]), [(Cause::MajorFault, 2_000_000.0)]);
        let both = Observation { voluntary: 1, involuntary: 3, cpu_ns: Some(900.0), ..away };
        assert_eq!(parts(both, &[], &[]), [(Cause::Preemption, 1_500_000.0), (Cause::Wait, 500_000.0)]);
        assert_eq!(parts(away, &[], &[]), [(Cause::Steal, 1_980_000.0), (Cause::Unexplained, 20_000.0)]);
    }

    #[test]
    fn without_processor_times_a_switch_explains_all() {
        let mut all = series(Observation { wall_ns: 51_000.0, involuntary: 1, ..USUAL });
        all.iter_mut().for_each(|one| one.cpu_ns = None);
        let most = |all: &[Observation]| attribute(all, &[], &[]).causes[0];
        assert_eq!((most(&all).cause, most(&all).lost), (Cause::Preemption, Picos(50_000_000)));
        all[100].involuntary = 0;
        assert_eq!((most(&all).cause, most(&all).lost), (Cause::Unexplained, Picos(50_000_000)));
    }

    #[test]
    fn faults_beyond_the_usual_number_count() {
        let busy = Observation { wall_ns: 5_001_000.0, cpu_ns: Some(5_000_900.0), ..USUAL };
        assert_eq!(parts(busy, &[], &[]), [(Cause::Unexplained, 5_000_000.0)], "one fault is usual here");
        let faults = parts(Observation { minor: 4, ..busy }, &[], &[]);
        assert_eq!(faults, [(Cause::MinorFault, 3_000_000.0), (Cause::Unexplained, 2_000_000.0)]);
        let read = parts(Observation { major: 1, ..busy }, &[], &[100]);
        assert_eq!(read, [(Cause::Tick, 4_000_000.0), (Cause::MajorFault, 1_000_000.0)]);
    }

    #[test]
    fn marks_come_first_and_count_once() {
        let long = Observation { wall_ns: 101_000.0, cpu_ns: Some(100_900.0), minor: 9, ..USUAL };
        let marks = [
            mark(1_050_000, 1_070_000, MarkCause::Major),
            mark(990_000, 1_060_000, MarkCause::Minor),
            mark(1_090_000, 1_095_000, MarkCause::Decay),
            mark(1_000_000, 1_101_000, MarkCause::Other("request".into())),
            mark(2_000_000, 2_100_000, MarkCause::Idle),
        ];
        let want =
            [(Cause::Collection, 70_000.0), (Cause::MinorFault, 25_000.0), (Cause::Allocator, 5_000.0)];
        assert_eq!(parts(long, &marks, &[]), want);
    }

    #[test]
    fn reported_steal_is_not_counted_twice() {
        let stolen =
            Observation { wall_ns: 101_000.0, cpu_ns: Some(20_900.0), steal_ns: Some(60_000.0), ..USUAL };
        let preempted = Observation { involuntary: 1, ..stolen };
        assert_eq!(parts(preempted, &[], &[]), [(Cause::Steal, 60_000.0), (Cause::Preemption, 40_000.0)]);
    }

    #[test]
    fn noise_between_the_clocks_is_not_steal() {
        let mut rng = Rng::new(4);
        let mut all = series(Observation { wall_ns: 6000.0, cpu_ns: Some(5860.0), ..USUAL });
        for one in &mut all[..100] {
            one.cpu_ns = Some(850.0 + 100.0 * rng.unit());
        }
        let attribution = attribute(&all, &[], &[]);
        let causes: Vec<Cause> = attribution.causes.iter().map(|total| total.cause).collect();
        assert_eq!(causes, [Cause::Unexplained], "steal is 40 ns beyond the median (seed 4)");
    }

    #[test]
    fn short_observations_have_no_loss() {
        let mut all = series(Observation { wall_ns: 10.0, ..USUAL });
        assert!(attribute(&all, &[], &[]).outliers.is_empty());
        all[7].wall_ns = f64::NAN;
        let attribution = attribute(&all, &[], &[]);
        assert!(attribution.outliers.is_empty() && attribution.wall_ns == 99.0 * 1000.0 + 10.0);
        assert_eq!(attribution.lost_share(), 0.0);
    }

    #[test]
    fn nothing_kept_gives_none() {
        let layers = Layers::peel(&[1.0], 1);
        assert_eq!(Attribution::of(&[], &[], &Layers::peel(&[], 1), &[]), None);
        assert_eq!(Attribution::of(&[USUAL, USUAL], &[], &layers, &[]), None, "the layers of another series");
    }

    fn observation() -> impl Strategy<Value = Observation> {
        let wall = prop_oneof![8 => 900.0f64..1100.0, 1 => 1100.0f64..1e8];
        let cpu = proptest::option::weighted(0.9, 0.0f64..1.2);
        let counts = (0u32..4, 0u32..2, 0u32..3, 0u32..3);
        (wall, cpu, counts, proptest::option::weighted(0.2, 0.0f64..1e6), 0u64..100_000_000).prop_map(
            |(wall_ns, cpu, (minor, major, voluntary, involuntary), steal_ns, start_ns)| {
                let cpu_ns = cpu.map(|share| share * wall_ns);
                Observation { start_ns, wall_ns, cpu_ns, minor, major, voluntary, involuntary, steal_ns }
            },
        )
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_whole(
            observations in proptest::collection::vec(observation(), 1..120),
            spans in proptest::collection::vec((0u64..100_000_000, 0u64..1_000_000, 0usize..4), 0..20),
            tick in proptest::collection::vec(0usize..130, 0..40),
            layers in 0u8..5,
        ) {
            let causes = [MarkCause::Minor, MarkCause::Idle, MarkCause::Trim, MarkCause::Other("own".into())];
            let marks: Vec<Mark> =
                spans.iter().map(|(start, span, cause)| mark(*start, start + span, causes[*cause].clone())).collect();
            let walls: Vec<f64> = observations.iter().map(|one| one.wall_ns).collect();
            let layers = Layers::peel(&walls, layers);
            let got = Attribution::of(&observations, &marks, &layers, &tick).unwrap();
            for outlier in &got.outliers {
                prop_assert_eq!(outlier.parts.iter().map(|(_, part)| part.0).sum::<u64>(), outlier.lost.0);
                prop_assert!((outlier.lost.ns() + got.usual_ns - walls[outlier.place]).abs() < 1e-3);
            }
            prop_assert_eq!(got.causes.iter().map(|total| total.lost.0).sum::<u64>(), got.lost.0);
            prop_assert_eq!(got.outliers.iter().map(|outlier| outlier.lost.0).sum::<u64>(), got.lost.0);
            let shares: f64 = got.causes.iter().map(|total| total.share).sum();
            prop_assert!(got.lost.0 == 0 || (shares - 1.0).abs() < 1e-9);
        }
    }
}
