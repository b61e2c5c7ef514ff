//! The search for beats (periodic disturbances): the loop over the five steps of [`super`].
//!
//! ```text
//! ranges of shells ─▶ strongest line left ─▶ fundamental ─▶ fold ────┬─▶ a beat: report it, take its
//!        ▲                                                           │   events out, new ranges ──────────┐
//!        │                                                           └─▶ too slow, or a gap: rule it out ─┤
//!        └────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Invariants:
//! - each round rules a frequency out, so the loop ends;
//! - a frequency that is ruled out is not found again, nor are its multiples;
//! - every round uses the threshold of the first, which searches the most frequencies.

use std::ops::RangeInclusive;

use super::disturbance::{Disturbance, disturbances};
use super::fold::{Fold, Kept};
use super::schuster::{Grid, background, power, refine, weighted_power};
use super::{
    BEAT_FALSE_ALARM, CYCLES_MIN, HZ_MAX, Known, MULTIPLE_TOLERANCE, Match, PERIODS_MAX, Period, Spectrum,
};
use crate::median;

/// The false-alarm rate of one test. It is below [`BEAT_FALSE_ALARM`] because the background is estimated: an
/// estimate too low by a seventh lets ten times as many lines pass.
const LINE_CHANCE: f64 = BEAT_FALSE_ALARM / 20.0;

/// The most lines examined.
const ROUNDS_MAX: usize = 4 * PERIODS_MAX;

/// The fastest beat searched, in cycles per typical observation.
const PER_OBSERVATION_MAX: f64 = 0.45;

/// The longest transform; in longer series only slower beats are searched.
const TRANSFORM_MAX: usize = 1 << 20;

/// A range of shells with fewer disturbances than this is not searched.
const EVENTS_MIN: usize = 20;

/// If a beat is found after its multiples, only those above this one are dropped. A low multiple may be a
/// separate beat: this kernel's tick can be five times the tick of a slow host.
const HIGH_MULTIPLE: f64 = 8.5;

/// The highest multiple of a beat that a line can be.
const ORDERS_MAX: usize = 64;

/// A fundamental is at least this share as high as the strongest of its multiples …
const FUNDAMENTAL_SHARE: f64 = 0.25;

/// … and exceeds its background by at least this factor, however low its frequency.
const FUNDAMENTAL_STRENGTH: f64 = 4.0;

/// The most kinds of event that alternate on a beat. With more, a fast beat would be taken for a slow one.
const KINDS_MAX: usize = 8;

/// The false-alarm rate of the test for alternating sizes.
const ALTERNATION_CHANCE: f64 = 1e-4;

/// The first point of the grid for a fundamental: two and a half cycles in the series. Such a slow beat is
/// not reported, but its multiples must not be reported as beats either.
const FUNDAMENTAL_PLACE_MIN: usize = 5;

/// The false-alarm rate of the test for harmonics.
const HARMONIC_CHANCE: f64 = 1e-3;

/// The half-width of the mask round a multiple of a beat: cycles over the span. For a beat that drifts, the
/// second constant is the least share of the frequency for each multiple, up to the third.
const MASK_CYCLES: f64 = 3.0;
const MASK_WANDER: f64 = 0.01;
const MASK_WANDER_MAX: f64 = 0.2;

/// The state of a search.
pub(super) struct Search {
    span: f64,
    lowest: f64,
    highest: f64,
    grid: Grid,
    /// The disturbances on no beat found so far.
    left: Vec<Disturbance>,
    lost: f64,
}

/// A range of shells and its periodogram.
struct Range {
    shells: RangeInclusive<usize>,
    periodogram: Vec<f64>,
}

/// A line that stands out.
struct Line {
    place: usize,
    strength: f64,
}

impl Search {
    pub(super) fn new(at: Vec<f64>, walls: &[f64]) -> Option<Self> {
        let steps: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let step = median(&steps)?;
        // The last observation counts as long as a typical one.
        let span = at.last()? + step;
        if span <= 0.0 || walls.iter().any(|wall| !wall.is_finite()) {
            return None;
        }
        let grid = Grid::new(span, HZ_MAX.min(PER_OBSERVATION_MAX / step), TRANSFORM_MAX);
        let left = disturbances(&at, walls);
        let lost = left.iter().map(|event| event.lost).sum();
        let (lowest, highest) = (CYCLES_MIN / span, grid.step * (grid.count - 1) as f64);
        Some(Self { span, lowest, highest, grid, left, lost })
    }

    pub(super) fn run(mut self, known: &[Known]) -> Option<Spectrum> {
        let disturbances = self.left.len();
        let mut periods: Vec<Period> = Vec::new();
        let mut ruled_out: Vec<Mask> = Vec::new();
        let mut ranges = self.ranges();
        // The first round searches all frequencies and ranges; later rounds search fewer.
        let looks = (ranges.len().max(1) * self.places().len()) as f64;
        let threshold = (looks / LINE_CHANCE).ln();
        while periods.len() < PERIODS_MAX && ruled_out.len() < ROUNDS_MAX {
            let Some((range, line)) = self.strongest(&ranges, threshold, &ruled_out) else { break };
            let events: Vec<f64> = self.within(&range.shells).map(|event| event.at).collect();
            let (peak, height) = refine(&events, self.frequency(line.place), self.grid.step);
            let order = self.order(range, &events, (peak, height), &ruled_out);
            let order = (order * self.alternation(range, peak / order as f64, &ruled_out)) as f64;
            let (frequency, error) = (peak / order, deviation(height, self.span) / order);
            let fold = Fold::new(&events, frequency, self.span);
            let gap_in = fold.is_gap().then(|| range.shells.clone());
            let is_beat = gap_in.is_none() && frequency >= self.lowest;
            ruled_out.push(Mask { frequency, error, steady: fold.is_steady(), span: self.span, gap_in });
            if is_beat {
                let kept = fold.kept(&self.left, range.shells.clone());
                periods.push(Period {
                    frequency_error: error,
                    strength: line.strength,
                    false_alarm: (looks * (-line.strength).exp()).min(1.0),
                    source: Match::find(frequency, error, known),
                    ..self.period(frequency, &fold, &kept)
                });
                self.take_out(&kept);
                ranges = self.ranges();
            }
        }
        drop_multiples(&mut periods, &ruled_out);
        let (span, lost, searched) = (self.span, self.lost, (self.lowest, self.highest));
        Some(Spectrum { span, searched, disturbances, lost, threshold, periods })
    }

    /// The period with the figures of the events on the beat; the figures of the line stay blank.
    fn period(&self, frequency: f64, fold: &Fold, kept: &Kept) -> Period {
        let members: Vec<&Disturbance> = kept.events.iter().map(|place| &self.left[*place]).collect();
        let losses: Vec<f64> = members.iter().map(|event| event.lost).collect();
        let beats = fold.beats(members.iter().map(|event| event.at));
        Period {
            frequency,
            frequency_error: 0.0,
            period: 1.0 / frequency,
            strength: 0.0,
            false_alarm: 1.0,
            steady: fold.is_steady(),
            members: members.iter().flat_map(|event| event.places.clone()).collect(),
            disturbances: members.len(),
            by_chance: kept.by_chance,
            beats: (beats as f64 / (self.span * frequency)).min(1.0),
            typical: median(&losses).unwrap_or(0.0),
            lost: kept.lost,
            share: if self.lost > 0.0 { (kept.lost / self.lost).min(1.0) } else { 0.0 },
            source: None,
            off_processor: false,
        }
    }

    /// Continues without the events on a beat.
    fn take_out(&mut self, kept: &Kept) {
        let mut stays = vec![true; self.left.len()];
        kept.events.iter().for_each(|place| stays[*place] = false);
        let mut stays = stays.into_iter();
        self.left.retain(|_| stays.next().unwrap_or(true));
    }

    fn frequency(&self, place: usize) -> f64 {
        place as f64 * self.grid.step
    }

    /// The points of the grid that are searched.
    fn places(&self) -> std::ops::Range<usize> {
        let first = (self.lowest / self.grid.step).ceil() as usize;
        first.min(self.grid.count)..self.grid.count
    }

    fn within<'a>(&'a self, shells: &'a RangeInclusive<usize>) -> impl Iterator<Item = &'a Disturbance> {
        self.left.iter().filter(|event| shells.contains(&event.shell))
    }

    /// The ranges of shells to search: one, two or three shells, and from each shell up; each set of events
    /// once.
    fn ranges(&self) -> Vec<Range> {
        let top = self.left.iter().map(|event| event.shell).max().unwrap_or(0);
        let filled: Vec<usize> =
            (0..=top).filter(|shell| self.left.iter().any(|event| event.shell == *shell)).collect();
        let transforms: Vec<_> = filled
            .iter()
            .map(|shell| self.grid.transform(self.within(&(*shell..=*shell)).map(|event| event.at)))
            .collect();
        let mut ranges = Vec::new();
        for first in 0..filled.len() {
            for last in first..filled.len() {
                let wanted = last - first < 3 || last + 1 == filled.len();
                let shells = filled[first]..=filled[last];
                let events = self.within(&shells).count();
                if !wanted || events < EVENTS_MIN {
                    continue;
                }
                let sum = |place: usize| transforms[first..=last].iter().map(|t| t[place]).sum();
                let power =
                    |sum: rustfft::num_complex::Complex<f32>| f64::from(sum.norm_sqr()) / events as f64;
                let periodogram = (0..self.grid.count).map(|place| power(sum(place))).collect();
                ranges.push(Range { shells, periodogram });
            }
        }
        ranges
    }

    /// The line that stands out most, if one exceeds the threshold.
    fn strongest<'a>(
        &self,
        ranges: &'a [Range],
        threshold: f64,
        masks: &[Mask],
    ) -> Option<(&'a Range, Line)> {
        let mut best: Option<(&Range, Line)> = None;
        for range in ranges {
            for place in self.places() {
                let z = range.periodogram[place];
                let least = best.as_ref().map_or(threshold, |(_, line)| line.strength);
                // The background is at least 1, so most points need no further test.
                if z <= least {
                    continue;
                }
                let strength = z / background(&range.periodogram, place);
                let frequency = self.frequency(place);
                if strength <= least || masks.iter().any(|mask| mask.covers(frequency, range)) {
                    continue;
                }
                // The bins mirror frequencies above their range; the events themselves do not.
                let events: Vec<f64> = self.within(&range.shells).map(|event| event.at).collect();
                if power(&events, frequency) > z / 2.0 {
                    best = Some((range, Line { place, strength }));
                }
            }
        }
        best
    }

    /// The multiple of its beat that a line is: the highest order whose beat has a line nearly as strong.
    fn order(&self, range: &Range, events: &[f64], (peak, height): (f64, f64), masks: &[Mask]) -> usize {
        let least = (ORDERS_MAX as f64 / HARMONIC_CHANCE).ln().max(FUNDAMENTAL_SHARE * height);
        let explains = |frequency: f64| {
            let place = (frequency / self.grid.step).round() as usize;
            // The grid excludes most orders; neighbouring high orders can only be distinguished by the events
            // themselves.
            place >= FUNDAMENTAL_PLACE_MIN
                && !masks.iter().any(|mask| mask.covers(frequency, range))
                && strength_near(&range.periodogram, place) >= FUNDAMENTAL_STRENGTH
                && power(events, frequency) >= least
        };
        // A line may be a high multiple of a multiple: the order found is tried again.
        let mut order = 1;
        while let Some(more) = (2..=ORDERS_MAX).rev().find(|more| explains(peak / (order * more) as f64)) {
            order *= more;
        }
        order
    }

    /// The number of kinds of event that alternate on a beat, such as 2 if every other event has another
    /// size.
    ///
    /// Two beats of one frequency, half a period (or a third) apart in phase, show a line at twice (or three
    /// times) their frequency and none at their own, if events are counted. Only the sizes of the events show
    /// the slower beat. For random sizes, their power (less the mean) is exponentially distributed, like the
    /// power of events.
    fn alternation(&self, range: &Range, frequency: f64, masks: &[Mask]) -> usize {
        let sizes: Vec<(f64, f64)> =
            self.within(&range.shells).map(|event| (event.at, event.shell as f64)).collect();
        let kinds = (2..=KINDS_MAX).map(|kinds| (kinds, frequency / kinds as f64)).filter(|(_, slower)| {
            (slower / self.grid.step).round() as usize >= FUNDAMENTAL_PLACE_MIN
                && *slower >= self.lowest
                && !masks.iter().any(|mask| mask.covers(*slower, range))
        });
        let powers = kinds.map(|(kinds, slower)| (kinds, weighted_power(&sizes, slower)));
        let strongest = powers.max_by(|a, b| a.1.total_cmp(&b.1));
        let least = (KINDS_MAX as f64 / ALTERNATION_CHANCE).ln();
        strongest.filter(|(_, power)| *power >= least).map_or(1, |(kinds, _)| kinds)
    }
}

/// Drops beats that are multiples of a beat found later: a high multiple may stand out before its
/// fundamental.
fn drop_multiples(periods: &mut Vec<Period>, masks: &[Mask]) {
    let beats: Vec<f64> = periods.iter().map(|period| period.frequency).collect();
    periods.retain(|period| {
        !masks.iter().any(|mask| {
            let is_beat = beats.contains(&mask.frequency) && mask.gap_in.is_none();
            is_beat && period.frequency > HIGH_MULTIPLE * mask.frequency && mask.is_multiple(period.frequency)
        })
    });
}

/// The highest strength at a point or either of its neighbours.
fn strength_near(periodogram: &[f64], place: usize) -> f64 {
    let near = place.saturating_sub(1)..(place + 2).min(periodogram.len());
    let z = periodogram[near].iter().copied().fold(0.0, f64::max);
    z / background(periodogram, place)
}

/// One standard deviation of the frequency of a line of this height: half a unit of log-likelihood below the
/// top.
fn deviation(height: f64, span: f64) -> f64 {
    (1.5 / height).sqrt() / (std::f64::consts::PI * span)
}

/// A beat already found; its frequency and multiples are not searched again.
struct Mask {
    frequency: f64,
    error: f64,
    steady: bool,
    span: f64,
    /// The shells in which the line is only a gap in others' beats. The disturbances that cause the gap are
    /// longer, so ranges above these shells are still searched.
    gap_in: Option<RangeInclusive<usize>>,
}

impl Mask {
    fn covers(&self, frequency: f64, range: &Range) -> bool {
        if self.gap_in.as_ref().is_some_and(|shells| range.shells.start() > shells.start()) {
            return false;
        }
        self.is_multiple(frequency)
    }

    fn is_multiple(&self, frequency: f64) -> bool {
        let order = (frequency / self.frequency).round();
        let share = if self.steady { 0.0 } else { (MASK_WANDER * order).min(MASK_WANDER_MAX) };
        let width = (MASK_CYCLES / self.span + 3.0 * order * self.error).max(share * self.frequency);
        let width = width.max(MULTIPLE_TOLERANCE * frequency);
        order >= 1.0 && (frequency - order * self.frequency).abs() <= width
    }
}
