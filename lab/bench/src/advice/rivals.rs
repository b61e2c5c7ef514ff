//! Two other ways to choose a memory limit: the Kubernetes recommender's rule, and a loop like Meta's Senpai.
//!
//! | name | recommended limit | source |
//! | --- | --- | --- |
//! | recommender | the 90th percentile of usage plus 15 % | the vertical pod autoscaler's documentation |
//! | Senpai-like | usage while a loop reclaims memory until tasks begin to stall | Weiner et al., TMO, 2022 |
//!
//! Departures:
//! - The recommender's percentile covers one run, sampled twenty times a second, instead of days.
//! - Senpai reclaims every six seconds, in proportion to how far the pressure is below its target. The
//!   programs here run for seconds only, so the loop here reclaims every tenth of a second.
//! - Cgroups of version 1 report no pressure. It is estimated as major faults times the delay of a fault.

use std::time::{Duration, Instant};
use vellum_campaign::confine::Group;

/// The recommender's percentile and margin.
const PERCENTILE: f64 = 0.9;
const MARGIN: f64 = 1.15;
/// Time between two samples of usage.
const SAMPLE: Duration = Duration::from_millis(50);
/// Time between two steps of the loop, its target pressure, and the largest share that a step reclaims.
const STEP: Duration = Duration::from_millis(100);
const PRESSURE: f64 = 0.001;
const TAKE: f64 = 0.01;

#[derive(Debug)]
pub(crate) struct Usage {
    samples: Vec<u64>,
    next: Instant,
}

impl Usage {
    pub(crate) fn new() -> Usage {
        Usage { samples: Vec::new(), next: Instant::now() }
    }

    /// Takes a sample if one is due. `bytes` returns the memory in use.
    pub(crate) fn look(&mut self, bytes: impl FnOnce() -> Option<u64>) {
        if Instant::now() >= self.next {
            self.next = Instant::now() + SAMPLE;
            self.samples.extend(bytes());
        }
    }

    pub(crate) fn recommended(&self) -> u64 {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        let at = (sorted.len() as f64 * PERCENTILE) as usize;
        sorted.get(at.min(sorted.len().saturating_sub(1))).map_or(0, |held| (*held as f64 * MARGIN) as u64)
    }

    /// The mean over the second half of the run, when a loop has settled.
    pub(super) fn settled(&self) -> u64 {
        let half = &self.samples[self.samples.len() / 2..];
        half.iter().sum::<u64>() / (half.len() as u64).max(1)
    }
}

/// A loop like Senpai's.
#[derive(Debug)]
pub(super) struct Senpai {
    delay_ns: f64,
    last: (Instant, u64),
}

impl Senpai {
    pub(super) fn new(delay_ns: f64) -> Senpai {
        Senpai { delay_ns, last: (Instant::now(), 0) }
    }

    /// Makes a step if one is due.
    pub(super) fn look(&mut self, group: &Group) {
        let wall = self.last.0.elapsed();
        if wall < STEP {
            return;
        }
        let faults = group.major_faults().unwrap_or(0);
        let waited = faults.saturating_sub(self.last.1) as f64 * self.delay_ns;
        let pressure = waited / wall.as_nanos() as f64;
        self.last = (Instant::now(), faults);
        let share = part(pressure);
        if share > 0.0 {
            group.reclaim((group.held().unwrap_or(0) as f64 * share) as u64);
        }
    }
}

/// The share that a step reclaims at this pressure.
fn part(pressure: f64) -> f64 {
    TAKE * (1.0 - pressure / PRESSURE).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recommender_leaves_out_a_short_peak_and_adds_its_margin() {
        let mut usage = Usage::new();
        usage.samples = (0..100).map(|at| if at < 5 { 1_000_000 } else { 1000 }).collect();
        assert_eq!((usage.recommended(), usage.settled()), (1150, 1000));
        usage.samples.clear();
        assert_eq!((usage.recommended(), usage.settled()), (0, 0));
    }

    #[test]
    fn the_loop_reclaims_less_under_higher_pressure() {
        assert_eq!((part(0.0), part(PRESSURE), part(1.0)), (TAKE, 0.0, 0.0));
        assert!((part(PRESSURE / 2.0) - TAKE / 2.0).abs() < 1e-12);
    }
}
