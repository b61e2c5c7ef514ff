//! Detects growth: a job is growing if its peak memory has risen in the last quarter of its time so far.
//!
//! The future size of a growing job is unknown, so its recommended limit is all the memory that it has held.

use std::time::Duration;
use vellum_kernel::Bytes;

const POINTS_MAX: usize = 64;
/// The last part of the time in which growth counts.
const LAST: f64 = 0.25;
/// Less growth than this part in it, or than this, is none.
const PART: f64 = 0.05;
const LEAST: u64 = 1 << 20;

/// The most that a job held, over its time.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    points: Vec<(Duration, Bytes)>,
    /// The least time between two points.
    spacing: Duration,
}

impl Growth {
    /// At this time of its clock the most that it had held was `peak`.
    pub(crate) fn note(&mut self, clock: Duration, peak: Bytes) {
        let last = self.points.last().map(|(at, _)| *at);
        if last.is_some_and(|last| clock < last + self.spacing || clock == last) {
            return;
        }
        self.points.push((clock, peak));
        if self.points.len() > POINTS_MAX {
            let every_second = self.points.iter().skip(1).step_by(2).copied();
            self.points = every_second.collect();
            self.spacing = clock / (POINTS_MAX as u32 / 2);
        }
    }

    /// True if it has grown in the last quarter of its time until `clock`, to `peak`.
    pub(crate) fn is_growing(&self, clock: Duration, peak: Bytes) -> bool {
        let from = clock.mul_f64(1.0 - LAST);
        let before = self.points.iter().take_while(|(at, _)| *at <= from).last();
        let grown = |before: &(Duration, Bytes)| {
            let more = peak.0.saturating_sub(before.1.0);
            more as f64 > before.1.0 as f64 * PART && more > LEAST
        };
        before.is_some_and(grown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(steps: u64, peak: impl Fn(u64) -> u64) -> bool {
        let mut growth = Growth::default();
        for step in 0..=steps {
            growth.note(Duration::from_millis(step * 10), Bytes(peak(step) << 20));
            assert!(growth.points.len() <= POINTS_MAX);
        }
        growth.is_growing(Duration::from_millis(steps * 10), Bytes(peak(steps) << 20))
    }

    #[test]
    fn growth_at_the_end_is_told_from_growth_at_the_beginning() {
        for steps in [10, 100, 1000, 10_000] {
            assert!(after(steps, |step| 10 + step * 1000 / steps), "all the time, {steps} steps");
            assert!(!after(steps, |step| 10 + (step * 1000 / steps).min(500)), "until half, {steps} steps");
            assert!(!after(steps, |_| 100), "never, {steps} steps");
            assert!(after(steps, |step| if step * 10 > steps * 9 { 200 } else { 100 }), "late, {steps}");
        }
        assert!(!Growth::default().is_growing(Duration::ZERO, Bytes(1 << 30)), "nothing was seen");
    }
}
