//! Computes a whole working-set curve in one pass over a reference string (the pages that a program
//! referenced, in order), from the intervals between references to the same page.
//!
//! A page referenced at time s and next at s′ lies in the working set of window T for min(s′ − s, T) ticks.
//! Its next reference is a fault if s′ − s > T. A table of last references and a histogram of intervals
//! therefore give the curve for all T at once:
//!
//! - z(T) = Σ min(interval, T) / V, over all intervals, and from each page's last reference to the end;
//! - f(T) = (intervals longer than T + first references) / V.
//!
//! V is the virtual time that has passed. First references count as infinite intervals. Otherwise the fault
//! rate of large windows would be far too low for memory that is touched for the first time, or was touched
//! before the watch began.
//!
//! **Spatial sampling** bounds the table. A page is sampled, with all of its references, if some bits of its
//! hash are zero; a sampled page stands for 2^bits pages. When the table is full, one more bit must be zero,
//! and half of the pages leave the table. References counted before keep their weight.
//!
//! ```text
//! reference ─▶ hash ────▶ in the sample? ─no─▶ done
//!                            │ yes
//!                            ▼
//!              last[page] ─▶ interval ─▶ histogram (segment) ──at each segment's end──▶ histogram (all)
//!                                                         └──▶ History: the curve of each segment
//! ```
//!
//! An interval may span many segments of the string. At a segment's end, the times since every page's last
//! reference are read; Σ min(time, T) is added to the segment that ends and subtracted from the next one.
//!
//! Error: without sampling, exact at each [`Histogram::edge`]. With sampling, the standard error of z(T) is
//! at most √((2^bits − 1) · z(T)) pages ([`Intervals::standard_error`]), since each page adds at most one
//! page to z.
//!
//! Source: Denning and Schwartz 1972 for the identity; Waldspurger and others 2015 (SHARDS) for sampling by
//! hash with a falling rate. Departure: SHARDS rescales its counts when its rate falls; here each count has
//! its weight instead.

use hashbrown::HashTable;

use crate::curve::Curve;
use crate::hash::{SAMPLE_BITS_MAX, sampled, scatter};
use crate::histogram::Histogram;
use crate::history::History;
use crate::unit::{Page, Ticks};

/// The usual number of pages to follow: exact for a GiB of 4 KiB pages; some 8 MiB of table.
pub const SAMPLE_PAGES: usize = 1 << 18;
/// The fewest pages to follow.
pub const SAMPLE_PAGES_MIN: usize = 1 << 8;

/// The fewest references in a segment …
const SEGMENT_MIN: u64 = 1 << 16;
/// … and the fewest for each page that is followed, since the end of a segment reads every page.
const SEGMENT_PER_PAGE: u64 = 4;
/// The windows of the history: this many for each power of 2 …
const HISTORY_OCTAVE: u32 = 4;
/// … up to this power of 2, which no trace exceeds.
const HISTORY_OCTAVES: u32 = 50;
/// Windows of the curve for each power of 2.
const CURVE_OCTAVE: u32 = 16;

#[derive(Debug, Clone, Copy)]
struct Followed {
    page: Page,
    last: u64,
}

/// A pass over a reference string.
#[derive(Debug, Clone)]
pub struct Intervals {
    table: HashTable<Followed>,
    pages_max: usize,
    bits: u32,
    /// The references in a segment, and how many are left until the current one ends.
    segment_length: u64,
    segment_left: u64,
    segment: Histogram,
    /// Σ min(time unreferenced, T) over all pages at the start of the segment, at the history's windows.
    segment_open: Vec<f64>,
    /// First references in the segment, each with its weight.
    segment_firsts: u64,
    segment_start: u64,
    all: Histogram,
    firsts: u64,
    references: u64,
    start: u64,
    now: u64,
    history: History,
}

impl Default for Intervals {
    fn default() -> Self {
        Self::new(SAMPLE_PAGES, Ticks(0))
    }
}

impl Intervals {
    /// An empty pass that begins at `start`. At most `pages_max` pages will be followed (at least
    /// [`SAMPLE_PAGES_MIN`]).
    #[must_use]
    pub fn new(pages_max: usize, start: Ticks) -> Self {
        let windows = grid(HISTORY_OCTAVE, HISTORY_OCTAVES);
        Self {
            table: HashTable::new(),
            pages_max: pages_max.max(SAMPLE_PAGES_MIN),
            bits: 0,
            segment_length: SEGMENT_MIN,
            segment_left: SEGMENT_MIN,
            segment: Histogram::default(),
            segment_open: vec![0.0; windows.len()],
            segment_firsts: 0,
            segment_start: start.0,
            all: Histogram::default(),
            firsts: 0,
            references: 0,
            start: start.0,
            now: start.0,
            history: History::new(windows, 1.0),
        }
    }

    /// Adds a reference to `page` at `now`.
    ///
    /// If `now` lies before the last reference, the time of the last reference counts.
    #[inline]
    pub fn reference(&mut self, page: Page, now: Ticks) {
        self.now = self.now.max(now.0);
        let scattered = scatter(page);
        if sampled(scattered, self.bits) {
            self.follow(page, scattered);
        }
        self.segment_left -= 1;
        if self.segment_left == 0 {
            self.end_segment();
        }
    }

    /// The virtual time V that has passed, up to `end` or the last reference, whichever is later.
    #[must_use]
    pub fn passed(&self, end: Ticks) -> Ticks {
        Ticks(self.now.max(end.0) - self.start)
    }

    /// The number of references, sampled or not.
    #[must_use]
    pub fn references(&self) -> u64 {
        self.references + (self.segment_length - self.segment_left)
    }

    /// The number of different pages; an estimate when sampling.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.firsts + self.segment_firsts
    }

    /// First references a tick, up to `end`; 0 before any time has passed. If a program was watched from its
    /// start, no memory avoids these faults ([`Demand::unavoidable`](crate::Demand::unavoidable)).
    #[must_use]
    pub fn first_references(&self, end: Ticks) -> f64 {
        self.pages() as f64 / self.passed(end).as_f64().max(1.0)
    }

    /// The number of pages of which one is followed: 1 if all are.
    #[must_use]
    pub fn sampled_one_in(&self) -> u64 {
        1 << self.bits
    }

    /// The upper bound of the standard error, in pages, that sampling adds to a z of `pages`; 0 without
    /// sampling.
    #[must_use]
    pub fn standard_error(&self, pages: f64) -> f64 {
        ((self.sampled_one_in() - 1) as f64 * pages).sqrt()
    }

    /// The curve of all references. The string ends at `end`, or at its last reference if that is later.
    ///
    /// `None` before two ticks have passed, because there is no window yet.
    #[must_use]
    pub fn curve(&self, end: Ticks) -> Option<Curve> {
        let passed = self.passed(end).as_f64();
        let windows: Vec<f64> =
            grid(CURVE_OCTAVE, HISTORY_OCTAVES).into_iter().take_while(|window| *window <= passed).collect();
        let mut all = self.all.clone();
        all.take(&mut self.segment.clone());
        let open = self.open(end).below(&windows);
        let beyond: Vec<f64> = windows.iter().map(|window| window + 1.0).collect();
        let pages: Vec<f64> =
            all.below(&windows).iter().zip(open).map(|(a, b)| (a.0 + b.0) / passed).collect();
        let faults: Vec<f64> =
            all.below(&beyond).iter().map(|(_, longer)| (longer + self.pages() as f64) / passed).collect();
        Curve::of_counts(&windows, &pages, &faults).ok()
    }

    /// The curves of the segments of the string, to show how they vary. Their mean is the curve.
    ///
    /// `None` before two ticks have passed.
    #[must_use]
    pub fn history(&self, end: Ticks) -> Option<History> {
        let passed = self.passed(end).as_f64();
        let mut history = self.history.clone();
        let length = (self.now.max(end.0) - self.segment_start) as f64;
        let (pages, faults) = self.segment_curve(length, &self.open_sums(end));
        history.push(length, &pages, &faults);
        let known = history.windows().iter().take_while(|window| **window <= passed).count();
        history.cut(known)
    }

    /// The intervals that have not ended, cut off at `end`.
    fn open(&self, end: Ticks) -> Histogram {
        let (mut open, end) = (Histogram::default(), self.now.max(end.0));
        for followed in &self.table {
            open.add(end - followed.last, 1 << self.bits);
        }
        open
    }

    #[inline]
    fn follow(&mut self, page: Page, scattered: u64) {
        let (now, weight) = (self.now, 1u64 << self.bits);
        if let Some(followed) = self.table.find_mut(scattered, |followed| followed.page == page) {
            self.segment.add(now - followed.last, weight);
            followed.last = now;
            return;
        }
        self.segment_firsts += weight;
        self.table.insert_unique(scattered, Followed { page, last: now }, |followed| scatter(followed.page));
        while self.table.len() > self.pages_max && self.bits < SAMPLE_BITS_MAX {
            self.bits += 1;
            let bits = self.bits;
            self.table.retain(|followed| sampled(scatter(followed.page), bits));
        }
    }

    #[cold]
    fn end_segment(&mut self) {
        self.references += self.segment_length;
        self.segment_length = SEGMENT_MIN.max(SEGMENT_PER_PAGE * self.table.len() as u64);
        self.segment_left = self.segment_length;
        let length = (self.now - self.segment_start) as f64;
        // A segment without time has no rates, so it continues.
        if length > 0.0 {
            let open = self.open_sums(Ticks(self.now));
            let (pages, faults) = self.segment_curve(length, &open);
            self.history.push(length, &pages, &faults);
            self.all.take(&mut self.segment);
            self.firsts += std::mem::take(&mut self.segment_firsts);
            self.segment_start = self.now;
            self.segment_open = open;
        }
    }

    fn open_sums(&self, end: Ticks) -> Vec<f64> {
        self.open(end).below(self.history.windows()).iter().map(|(sum, _)| *sum).collect()
    }

    /// z and f of the segment at the history's windows, for a segment of `length` that ends with `open`.
    /// Empty without time.
    fn segment_curve(&self, length: f64, open: &[f64]) -> (Vec<f64>, Vec<f64>) {
        if length <= 0.0 {
            return (Vec::new(), Vec::new());
        }
        let firsts = self.segment_firsts as f64;
        let held = self.segment.below(self.history.windows());
        // If the sample was halved within the segment, the amount subtracted may by chance exceed the amount
        // added.
        let pages = held.iter().zip(open).zip(&self.segment_open);
        let pages = pages.map(|((held, after), before)| (held.0 + after - before).max(0.0) / length);
        (pages.collect(), held.iter().map(|(_, longer)| (longer + firsts) / length).collect())
    }
}

/// Windows at the histogram's edges, some for each power of 2, from 1 on.
fn grid(octave: u32, octaves: u32) -> Vec<f64> {
    let window = |step: u32| Histogram::edge((f64::from(step) / f64::from(octave)).exp2() as u64) as f64;
    let mut windows: Vec<f64> = (0..=octave * octaves).map(window).collect();
    windows.dedup();
    windows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// By the definition: the mean working set of this window, and the faults.
    fn exact_working_set(references: &[Page], window: usize) -> (f64, u64) {
        let (mut last, mut sum, mut faults) = (HashMap::new(), 0, 0);
        for (now, page) in references.iter().enumerate() {
            faults += u64::from(last.insert(*page, now).is_none_or(|last| now - last > window));
            sum += last.values().filter(|last| now - **last < window).count();
        }
        (sum as f64 / references.len() as f64, faults)
    }

    fn pass(references: &[Page], pages_max: usize) -> Intervals {
        let mut intervals = Intervals::new(pages_max, Ticks(0));
        for (now, page) in references.iter().enumerate() {
            intervals.reference(*page, Ticks(now as u64));
        }
        intervals
    }

    #[test]
    fn no_time_no_curve() {
        let intervals = Intervals::default();
        assert_eq!(intervals.curve(Ticks(0)), None);
        assert!(intervals.history(Ticks(0)).is_none());
        assert_eq!((intervals.references(), intervals.pages(), intervals.sampled_one_in()), (0, 0, 1));
    }

    #[test]
    fn time_may_stand_still_or_run_back() {
        let mut intervals = Intervals::default();
        for n in 0..3 * SEGMENT_MIN {
            intervals.reference(Page(n % 10), Ticks(if n % 2 == 0 { 5 } else { 3 }));
        }
        assert_eq!(intervals.references(), 3 * SEGMENT_MIN);
        let curve = intervals.curve(Ticks(10)).unwrap();
        assert_eq!(curve.last().pages, 5.0, "ten pages for half of the time");
    }

    #[test]
    fn the_mean_of_the_segments_is_the_curve() {
        // A cyclic walk over 3,000 pages, then one over 300, each for some segments.
        let mut intervals = Intervals::new(1 << 13, Ticks(0));
        let length = 5 * SEGMENT_MIN;
        for now in 0..2 * length {
            intervals.reference(Page(if now < length { now % 3000 } else { 10_000 + now % 300 }), Ticks(now));
        }
        let end = Ticks(2 * length);
        let (curve, history) = (intervals.curve(end).unwrap(), intervals.history(end).unwrap());
        for point in history.mean().unwrap().points() {
            let exact = curve.at(point.window).unwrap();
            assert!((point.pages - exact.pages).abs() < 1e-6 * exact.pages, "{point:?} {exact:?}");
        }
        let held: Vec<f64> = history.curves().map(|(_, curve)| curve.at(10_000.0).unwrap().pages).collect();
        assert!(held[1..4].iter().all(|pages| (pages - 3000.0).abs() < 1.0), "{held:?}");
        assert!(held[6..].iter().all(|pages| (pages - 300.0).abs() < 1.0), "{held:?}");
    }

    proptest! {
        #[test]
        fn every_small_window_is_exact(numbers in prop::collection::vec(0u64..20, 2..600)) {
            let references: Vec<Page> = numbers.into_iter().map(Page).collect();
            let end = Ticks(references.len() as u64);
            let curve = pass(&references, 1 << 10).curve(end).unwrap();
            for point in curve.points().iter().filter(|point| point.window < 250.0) {
                let (pages, faults) = exact_working_set(&references, point.window as usize);
                prop_assert!((point.pages - pages).abs() < 1e-9, "{point:?} for {pages}");
                prop_assert!((point.faults * end.as_f64() - faults as f64).abs() < 1e-6, "{point:?} for {faults}");
            }
        }
    }
}
