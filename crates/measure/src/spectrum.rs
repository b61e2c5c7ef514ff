//! Periodic disturbances: finds their periods, strengths and sources.
//!
//! Bates 1999 saw a regular pattern in a plot of values in order, and showed by experiment that the
//! collector caused it. Here such a pattern is found by its frequency, in five steps:
//!
//! ```text
//! starts, walls ─▶ disturbances ─▶ periodograms ─▶ strongest line ─▶ fundamental ─▶ fold ─▶ Period ─┐
//!                  in shells of    of ranges of    over its          of the line    which events    │
//!                  doubling size   shells          background                       are on it?      │
//!                       ▲                                                                           │
//!                       └──────────── without the events on it, until no line is left ──────────────┘
//! ```
//!
//! 1. An observation that took longer than its neighbourhood is an event in time ([`disturbance`]); its size
//!    only determines its shell (a class of sizes that differ at most twofold).
//! 2. Ranges of neighbouring shells are each given a periodogram ([`schuster`]).
//! 3. A line (a peak of the periodogram) counts only if noise alone would show so strong a line in at most
//!    [`BEAT_FALSE_ALARM`] of all searches. The threshold accounts for the number of frequencies and ranges
//!    searched.
//! 4. A beat (a periodic disturbance) has equally strong lines at all multiples of its frequency. The lowest
//!    frequency that explains a line is the beat; its multiples are never reported as beats.
//! 5. [`fold`] finds the events on the beat by their phase. These events determine the beat's share of the
//!    loss. They are removed before the search continues, so that a strong beat does not hide a weak one.
//!
//! Invariants:
//! - no period's frequency is a multiple of another's, within the resolution of the span;
//! - a period has at least [`CYCLES_MIN`] cycles;
//! - its members are indices of observations, in order.
//!
//! Events that are regularly *missing* are a gap: short disturbances go unseen while a long one lasts. Gaps
//! are not reported.
//!
//! Limits: beats faster than 0.45 per typical observation, or than [`HZ_MAX`], are not searched, because
//! observations themselves are nearly periodic. Disturbances in pauses between observations are not seen.
//!
//! Sources: the question is from Bates 1999 (sections "Initial Results" and "Interpreting the Results"); the
//! periodogram of events is Schuster's (1898). Departures from a textbook search: shells of sizes replace
//! weights, which one preemption of a hundred milliseconds would dominate; the background is that of the
//! neighbouring frequencies, since disturbances come in bursts.

mod disturbance;
mod fold;
mod known;
mod schuster;
mod search;
#[cfg(test)]
mod tests;

use crate::{Series, median};
pub use known::{Known, MATCH_TOLERANCE, MULTIPLE_TOLERANCE, Match};
use search::Search;

/// The largest share of searches through series without a beat that report one.
pub const BEAT_FALSE_ALARM: f64 = 0.01;

/// The fastest beat that is searched, in cycles per second.
pub const HZ_MAX: f64 = 2000.0;

/// The least number of cycles of a beat within the series: fewer random events too easily look regular.
pub const CYCLES_MIN: f64 = 20.0;

/// The most periods a spectrum reports.
pub const PERIODS_MAX: usize = 8;

/// The beats in the disturbances of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// The length of the series, in seconds.
    pub span: f64,
    /// The slowest and the fastest beat that were searched, in hertz.
    pub searched: (f64, f64),
    /// The number of disturbances; neighbouring observations are one.
    pub disturbances: usize,
    /// The excess time of all disturbances together, in the unit of the walls.
    pub lost: f64,
    /// The strength that a line must exceed to be reported.
    pub threshold: f64,
    /// The beats, the strongest first.
    pub periods: Vec<Period>,
}

/// A beat.
#[derive(Debug, Clone, PartialEq)]
pub struct Period {
    /// The frequency, in hertz.
    pub frequency: f64,
    /// One standard deviation of the frequency.
    pub frequency_error: f64,
    /// The time from one cycle to the next, in seconds.
    pub period: f64,
    /// The power of its strongest line over the background.
    pub strength: f64,
    /// The probability that noise has a line as strong anywhere in the searched range.
    pub false_alarm: f64,
    /// True if the phase is constant over the whole series. The beat of a sleeping thread drifts.
    pub steady: bool,
    /// The places of the observations that it disturbed, in order.
    pub members: Vec<usize>,
    /// The number of disturbances on the beat; neighbouring observations are one.
    pub disturbances: usize,
    /// The number of disturbances expected on the beat by chance.
    pub by_chance: f64,
    /// The share of the cycles with a disturbance, 0 to 1.
    pub beats: f64,
    /// The median excess of the disturbances on the beat, in the unit of the walls.
    pub typical: f64,
    /// The total excess of the disturbances on the beat less the excess expected by chance, in the unit of
    /// the walls.
    pub lost: f64,
    /// That excess as a share of the excess of all disturbances, 0 to 1.
    pub share: f64,
    /// The known source that it matches.
    pub source: Option<Match>,
    /// True if the thread was off its processor during the disturbances, because another thread had it or
    /// because it waited. The beat then belongs to that thread, or to whatever it waits for.
    pub off_processor: bool,
}

impl Period {
    /// The source in words: the known source, or "switches" if the thread left the processor each time.
    #[must_use]
    pub fn whose(&self) -> Option<String> {
        match &self.source {
            Some(source) => Some(source.to_string()),
            None => self.off_processor.then(|| "switches".to_owned()),
        }
    }
}

impl Spectrum {
    /// The beats in the disturbances of a series, in seconds.
    ///
    /// `starts_ns` are the starts of the observations (nanoseconds, never backwards), `walls` their lengths,
    /// in any unit and in the same order; `known` are the frequencies of known sources.
    ///
    /// `None` if the two differ in length, there are fewer than two observations or no time between them,
    /// time goes backwards, or a wall is not finite.
    #[must_use]
    pub fn of(starts_ns: &[u64], walls: &[f64], known: &[Known]) -> Option<Self> {
        let first = *starts_ns.first()?;
        if starts_ns.len() != walls.len() || !starts_ns.is_sorted() {
            return None;
        }
        let at: Vec<f64> = starts_ns.iter().map(|start| (start - first) as f64 / 1e9).collect();
        Search::new(at, walls)?.run(known)
    }

    /// The beats in the disturbances of a recorded series, in seconds. Disturbances while the thread ran are
    /// searched first, then those that took its processor ([`Period::off_processor`]). If they were searched
    /// together, the latter would hide the former on a busy machine.
    ///
    /// `None` if the series has no starts, or if [`of`](Self::of) returns `None`.
    #[must_use]
    pub fn of_series(series: &Series, known: &[Known]) -> Option<Self> {
        let (starts, walls) = (series.starts()?, series.walls());
        let switched: Vec<bool> =
            series.observations.iter().map(|one| one.involuntary + one.voluntary > 0).collect();
        if !switched.contains(&true) {
            return Self::of(&starts, &walls, known);
        }
        let usual = median(&walls)?;
        let with = |wanted: bool| -> Vec<f64> {
            let each = walls.iter().zip(&switched);
            each.map(|(wall, switched)| if *switched == wanted { *wall } else { usual }).collect()
        };
        let mut running = Self::of(&starts, &with(false), known)?;
        let away = Self::of(&starts, &with(true), known)?;
        let resolution = 1.0 / running.span;
        let is_new = |period: &Period| {
            running.periods.iter().all(|other| (other.frequency - period.frequency).abs() > resolution)
        };
        let room = PERIODS_MAX.saturating_sub(running.periods.len());
        let news = away.periods.iter().filter(|period| is_new(period)).take(room).cloned();
        let news: Vec<Period> = news.map(|period| Period { off_processor: true, ..period }).collect();
        let lost = running.lost + away.lost;
        // The shares are relative to the loss of each half.
        let shares = running.periods.iter_mut().map(|period| (period, running.lost));
        shares.for_each(|(period, of)| period.share *= if lost > 0.0 { of / lost } else { 0.0 });
        running.periods.extend(news.into_iter().map(|period| Period {
            share: if lost > 0.0 { period.share * away.lost / lost } else { 0.0 },
            ..period
        }));
        running.disturbances += away.disturbances;
        running.lost = lost;
        Some(running)
    }

    /// The places of all observations that are on the kernel's beat (or a part or multiple of it), in order.
    #[must_use]
    pub fn on_tick(&self) -> Vec<usize> {
        let is_tick = |period: &&Period| period.source.as_ref().is_some_and(|source| source.known.tick);
        let mut places: Vec<usize> =
            self.periods.iter().filter(is_tick).flat_map(|p| p.members.clone()).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}
