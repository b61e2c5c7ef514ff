//! Frames not needed for the whole of the decay time: the least there was of it.
//!
//! ```text
//! pages kept   ▇▇▇▅▅▇▇▃▃▅▇▇▆▆      the decay time, in parts: marks 3 3 6 … ─▶ the least was never needed
//!                     └── part ─┘
//! ```

/// Parts of the decay time.
pub(crate) const DECAY_PARTS: usize = 4;

/// The least of a number of pages, part by part.
#[derive(Debug)]
pub(crate) struct LowWater {
    /// Since the last tick.
    now: u64,
    /// In the parts before, the latest first.
    before: [u64; DECAY_PARTS],
}

impl LowWater {
    pub(crate) const fn new() -> LowWater {
        LowWater { now: 0, before: [0; DECAY_PARTS] }
    }

    /// There are `pages`.
    pub(crate) fn note(&mut self, pages: u64) {
        self.now = self.now.min(pages);
    }

    /// A part has passed, and there are `pages`: how many of them were not needed for the whole decay time.
    pub(crate) fn tick(&mut self, pages: u64) -> u64 {
        self.before.rotate_right(1);
        self.before[0] = self.now.min(pages);
        self.now = pages;
        self.before.iter().copied().min().unwrap_or(0)
    }

    /// Pages that were not needed in the last part.
    pub(crate) fn idle(&self) -> u64 {
        self.before[0]
    }

    /// Records that `pages` of them went.
    pub(crate) fn gone(&mut self, pages: u64) {
        for low in &mut self.before {
            *low = low.saturating_sub(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_needed_once_in_the_decay_time_stays() {
        let mut low_water = LowWater::new();
        // The first part began with nothing.
        let surplus: Vec<u64> = (0..=DECAY_PARTS).map(|_| low_water.tick(100)).collect();
        assert_eq!(surplus, [0, 0, 0, 0, 100]);
        low_water.note(30);
        low_water.note(80);
        assert_eq!((low_water.tick(100), low_water.idle()), (30, 30));
        low_water.gone(30);
        let surplus: Vec<u64> = (0..=DECAY_PARTS).map(|_| low_water.tick(70)).collect();
        assert_eq!(surplus, [0, 0, 0, 70, 70], "the part in which 30 were left has to pass");
    }
}
