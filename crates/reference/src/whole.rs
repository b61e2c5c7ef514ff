//! The curve of the whole time that a job was watched, including the time between cycles.
//!
//! A watch can afford few cycles (samples) of a large job; most of the time passes between them. For a
//! program that builds a table and sorts it at its end, cycles alone would be misleading. All time therefore
//! gets a curve:
//!
//! ```text
//! resident    ▁▂▃▃▃▃▄▅▅▅▇▇▇
//! cycle       ────├──┤────────
//! counted as   w    w   w + growth
//! ```
//!
//! w is the curve of the last cycle (before there is one, of the first). Memory that became resident since
//! that cycle's end (growth) counts as referenced in every window, until the next cycle. That is wrong for
//! memory that is written and never read; the next cycle corrects it.
//!
//! All time is divided into stretches, each weighted in the [`History`] by its user CPU time.

use crate::watcher::PAGE_BYTES;
use std::time::Duration;
use vellum_kernel::Bytes;
use vellum_workset::History;

/// Stretches are no shorter than this, in the job's user CPU time.
const STRETCH_MIN: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Whole {
    pub(super) stretches: History,
    /// The last cycle's pages at each window, and the resident memory at its end.
    latest: Option<(Vec<f64>, Bytes)>,
    /// Up to when the job's time is accounted for.
    until: Duration,
}

impl Whole {
    pub(super) fn new(windows: Vec<f64>, from: Duration) -> Whole {
        Whole { stretches: History::new(windows, 1.0), latest: None, until: from }
    }

    pub(super) fn cycle(&mut self, pages: Vec<f64>, resident: Bytes) {
        if !pages.is_empty() {
            self.latest = Some((pages, resident));
        }
    }

    /// The job's time is `now`, and `resident` is resident; time before the first cycle waits for it.
    pub(super) fn pass(&mut self, now: Duration, resident: Bytes) {
        let length = now.saturating_sub(self.until);
        if let Some((pages, then)) = &self.latest
            && length >= STRETCH_MIN
        {
            let growth = (resident.0.saturating_sub(then.0) / PAGE_BYTES) as f64;
            let pages: Vec<f64> = pages.iter().map(|pages| pages + growth).collect();
            self.stretches.push(length.as_nanos() as f64, &pages, &[]);
            self.until = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(count: u64) -> Bytes {
        Bytes(count * PAGE_BYTES)
    }

    #[test]
    fn growth_after_a_look_counts_and_the_next_look_corrects_it() {
        let at = Duration::from_millis;
        let mut whole = Whole::new(vec![1e8, 2e8], at(0));
        whole.pass(at(500), pages(50));
        assert_eq!(whole.stretches.samples(), 0, "nothing is known before the first cycle");
        whole.cycle(vec![40.0, 60.0], pages(100));
        whole.pass(at(1000), pages(100));
        whole.pass(at(1500), pages(150));
        whole.pass(at(1501), pages(900));
        whole.cycle(vec![45.0, 70.0], pages(150));
        whole.pass(at(2000), pages(120));
        let found = whole.stretches.curves();
        let found = found.map(|(part, curve)| (part, curve.first().pages, curve.last().pages));
        let found: Vec<(f64, f64, f64)> = found.collect();
        // The time before the first cycle is the first cycle's.
        assert_eq!(found, [(0.5, 40.0, 60.0), (0.25, 90.0, 110.0), (0.25, 45.0, 70.0)]);
    }

    #[test]
    fn a_cycle_that_found_nothing_changes_nothing() {
        let mut whole = Whole::new(vec![1e8, 2e8], Duration::ZERO);
        whole.cycle(Vec::new(), pages(5));
        whole.pass(Duration::from_secs(1), pages(5));
        assert_eq!(whole.stretches.samples(), 0);
    }
}
