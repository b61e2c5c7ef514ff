//! Stores the samples (looks) of a run, merged so that their number stays limited.
//!
//! ```text
//! looks    x x x x x x x x x x x x x x x x      every look counts in the average and the peak
//! points   x   x   x   x   x   x   x   x        only every stride-th look makes a point
//! ```
//!
//! At [`POINTS_MAX`] points, neighbours are merged and the stride doubles. A long run therefore has at
//! least half of [`POINTS_MAX`] points, evenly spread.
//!
//! Invariants: points are in the order of time. A point's `resident_max` covers every look since the last
//! point, so merging loses no peak. The counters of a point are those of its last look. The average is an
//! integral (trapezoids) over all looks, not over the points kept.

use crate::Bytes;
use std::time::Duration;

/// The most points a series keeps.
pub const POINTS_MAX: usize = 4096;

/// The fewest samples for an average.
pub const AVERAGE_LOOKS_MIN: u64 = 3;

/// One point: the job at a moment. Counters count since the start of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Time since the start.
    pub at: Duration,
    /// Processes alive.
    pub processes: u32,
    /// Their resident memory.
    pub resident: Bytes,
    /// The most resident memory seen since the point before.
    pub resident_max: Bytes,
    /// The part of the resident memory that is pages of files and shared memory.
    pub files: Bytes,
    /// Minor faults so far.
    pub minor_faults: u64,
    /// Major faults so far.
    pub major_faults: u64,
    /// Bytes in free-page caches now.
    pub cached: Bytes,
    /// Bytes in use by extents now.
    pub live: Bytes,
    /// Bytes of blocks in use, as they were counted last.
    pub in_use: Bytes,
    /// Bytes free beside these, in slabs.
    pub free_in_slabs: Bytes,
    /// Bytes of pages inside slabs that have gone back.
    pub returned: Bytes,
    /// Extents served from a free-page cache so far.
    pub cache_hits: u64,
    /// Extents handed out so far.
    pub extents: u64,
    /// Pages that pagers have read from their stores so far.
    pub paged_in: u64,
    /// Bytes handed out with their frames already there so far.
    pub warm: Bytes,
}

/// Points, the integral of resident memory, and its peak.
#[derive(Clone, Debug, Default)]
pub struct Series {
    points: Vec<Point>,
    /// How often the points were halved: one is kept of two to this power.
    halved: u32,
    pending: u32,
    pending_max: Bytes,
    last: Option<Point>,
    looks: u64,
    integral: f64,
    peak: Option<Point>,
}

impl Series {
    /// Adds a look (its `resident_max` is ignored: the series keeps that itself).
    pub fn push(&mut self, look: Point) {
        if let Some(last) = self.last {
            let seconds = look.at.saturating_sub(last.at).as_secs_f64();
            self.integral += seconds * (last.resident.0 + look.resident.0) as f64 / 2.0;
        }
        self.last = Some(look);
        self.looks += 1;
        if self.peak.is_none_or(|peak| look.resident > peak.resident) {
            self.peak = Some(look);
        }
        self.pending_max = self.pending_max.max(look.resident);
        self.pending += 1;
        if self.pending >= 1 << self.halved {
            self.keep();
        }
    }

    /// Ends the series at `at`, holding the last look's resident memory until then, with the totals the
    /// kernel accounted.
    pub fn finish(&mut self, at: Duration, minor_faults: u64, major_faults: u64) {
        if let Some(last) = self.last {
            let end = Point {
                at: at.max(last.at),
                minor_faults: minor_faults.max(last.minor_faults),
                major_faults: major_faults.max(last.major_faults),
                ..last
            };
            self.push(end);
            self.looks -= 1;
            if self.pending > 0 {
                self.keep();
            }
        }
    }

    /// The points, in order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Looks taken (at least as many as there are points, the closing one aside).
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// The most resident memory any look saw; `None` without a look.
    pub fn peak(&self) -> Option<Bytes> {
        self.peak.map(|peak| peak.resident)
    }

    /// The first sample with the most resident memory.
    pub fn at_peak(&self) -> Option<&Point> {
        self.peak.as_ref()
    }

    /// Resident memory averaged over time from the first look to the last; `None` with fewer than
    /// [`AVERAGE_LOOKS_MIN`] looks.
    pub fn average(&self) -> Option<Bytes> {
        if self.looks < AVERAGE_LOOKS_MIN {
            return None;
        }
        let span = self.last?.at.saturating_sub(self.points.first()?.at).as_secs_f64();
        (span > 0.0).then(|| Bytes((self.integral / span).round() as u64))
    }

    fn keep(&mut self) {
        if self.points.len() == POINTS_MAX {
            self.halve();
        }
        if let Some(last) = self.last {
            self.points.push(Point { resident_max: self.pending_max, ..last });
        }
        (self.pending, self.pending_max) = (0, Bytes(0));
    }

    /// Merges points two by two, all but the first: it anchors the start of the run.
    fn halve(&mut self) {
        let merged = self.points[1..].chunks(2).map(|pair| {
            let last = pair[pair.len() - 1];
            let resident_max = pair.iter().map(|point| point.resident_max).max().unwrap_or_default();
            Point { resident_max, ..last }
        });
        self.points = self.points[..1].iter().copied().chain(merged).collect();
        self.halved += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look(ms: u64, resident: u64) -> Point {
        Point {
            at: Duration::from_millis(ms),
            resident: Bytes(resident),
            minor_faults: ms,
            ..Point::default()
        }
    }

    #[test]
    fn the_average_is_the_trapezoid() {
        let mut series = Series::default();
        assert_eq!((series.average(), series.peak()), (None, None));
        series.push(look(0, 0));
        assert_eq!(series.average(), None);
        series.push(look(1000, 100));
        assert_eq!(series.average(), None);
        series.push(look(3000, 100));
        assert_eq!(series.average(), Some(Bytes(83)));
        series.finish(Duration::from_secs(6), 9000, 1);
        assert_eq!(series.average(), Some(Bytes(92)));
        let end = series.points().last().unwrap();
        assert_eq!((end.minor_faults, end.major_faults, end.resident), (9000, 1, Bytes(100)));
        assert_eq!(series.looks(), 3);
    }

    proptest! {
        #[test]
        fn any_length_keeps_its_peak_its_order_and_its_average(
            heights in proptest::collection::vec(0u64..1 << 30, 3..3 * POINTS_MAX), longer in 0usize..40_000,
        ) {
            let mut series = Series::default();
            let looks: Vec<u64> = heights.iter().copied().cycle().take(heights.len() + longer).collect();
            for (index, height) in looks.iter().enumerate() {
                series.push(look(index as u64, *height));
            }
            let end = Duration::from_millis(looks.len() as u64 - 1);
            series.finish(end, 0, 0);
            let points = series.points();
            prop_assert!(points.len() <= POINTS_MAX);
            prop_assert!(looks.len() < POINTS_MAX || points.len() >= POINTS_MAX / 2);
            prop_assert!(points.windows(2).all(|pair| pair[0].at <= pair[1].at));
            prop_assert_eq!(points.last().unwrap().at, end);
            let peak = *looks.iter().max().unwrap();
            prop_assert_eq!(series.peak(), Some(Bytes(peak)));
            prop_assert_eq!(points.iter().map(|p| p.resident_max).max(), Some(Bytes(peak)));
            let area: f64 = looks.windows(2).map(|pair| (pair[0] + pair[1]) as f64 / 2.0).sum();
            let average = area / (looks.len() - 1) as f64;
            prop_assert!((series.average().unwrap().0 as f64 - average).abs() <= 1.0 + average * 1e-9);
        }
    }
}
