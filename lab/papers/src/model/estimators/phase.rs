//! Detects that a job has begun a new phase: that its past use of pages no longer predicts its future use.
//!
//! The detector watches one number, such as the pages in a working set. It compares two averages of the
//! number: over the phase so far, and over the last intervals (smoothed as in equation 3.2 of Nishigaki
//! 1981). A new phase has begun if the two stay further apart than the short average has ever varied.
//!
//! Successive working sets share most of their window and so vary slowly. A change thus counts only if it
//! lasts as long as the window. During the first window after a start, working sets still include the time
//! before: an empty start or another phase. The detector ignores these samples, since they would hide
//! later changes.
//!
//! The paper's controller needs no restart: it averages over only three intervals.

/// Deviations of the short average up to this many are no change …
const DEVIATIONS: f64 = 5.0;
/// … nor are differences up to this part of the level …
const PART: f64 = 0.15;
/// … nor up to this many pages.
const PAGES: f64 = 2.0;
/// The weight of the past in the short average: the source's α.
const ALPHA: f64 = 0.5;

/// A watch on one number, which detects lasting changes.
#[derive(Debug, Clone)]
pub struct Phase {
    /// The samples until the level is established, which is also how long a change must last.
    lasting: u64,
    /// The samples that still show the time before.
    settling: u64,
    samples: u64,
    short: f64,
    mean: f64,
    squares: f64,
    outside: u64,
}

impl Phase {
    /// A watch on a number whose samples resemble their `lasting` neighbours.
    #[must_use]
    pub fn new(lasting: u64) -> Self {
        let lasting = lasting.max(2);
        Self { lasting, settling: lasting, samples: 0, short: 0.0, mean: 0.0, squares: 0.0, outside: 0 }
    }

    /// Adds a sample. True if a change has now lasted long enough; the watch then starts again.
    pub fn changed(&mut self, value: f64) -> bool {
        if self.settling > 0 {
            self.settling -= 1;
            return false;
        }
        self.short = if self.samples == 0 { value } else { ALPHA * self.short + (1.0 - ALPHA) * value };
        let away = (self.short - self.mean).abs();
        if self.samples >= 2 * self.lasting && away > self.band() {
            self.outside += 1;
            if self.outside >= self.lasting {
                *self = Self::new(self.lasting);
                return true;
            }
            // Samples that may belong to the next phase do not change the level of this one.
            return false;
        }
        self.outside = 0;
        self.samples += 1;
        let step = self.short - self.mean;
        self.mean += step / self.samples as f64;
        self.squares += step * (self.short - self.mean);
        false
    }

    fn band(&self) -> f64 {
        let deviation = (self.squares / self.samples as f64).sqrt();
        (DEVIATIONS * deviation).max(PART * self.mean).max(PAGES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_random::Rng;

    #[test]
    fn a_step_is_noticed_once_it_has_lasted() {
        let mut phase = Phase::new(10);
        let noticed: Vec<usize> =
            (0..200).filter(|n| phase.changed(if *n < 100 { 50.0 } else { 80.0 })).collect();
        assert_eq!(noticed, [109], "one change, ten samples after it came");
    }

    #[test]
    fn the_time_before_does_not_hide_a_change() {
        // A window of ten samples fills from empty; then the job takes a fifth more.
        let mut phase = Phase::new(10);
        let filling = |n: usize| if n < 10 { 5.0 * n as f64 } else { 50.0 };
        let noticed: Vec<usize> =
            (0..200).filter(|n| phase.changed(if *n < 100 { filling(*n) } else { 60.0 })).collect();
        assert_eq!(noticed.len(), 1, "{noticed:?}");
        assert!((109..=112).contains(&noticed[0]), "{noticed:?}");
    }

    #[test]
    fn noise_and_short_excursions_are_no_change() {
        let (mut phase, mut random) = (Phase::new(10), Rng::new(8));
        for n in 0..100_000 {
            let spike = if n % 500 > 494 { 200.0 } else { 0.0 };
            assert!(!phase.changed(50.0 + 20.0 * random.unit() + spike), "sample {n} (seed 8)");
        }
    }
}
