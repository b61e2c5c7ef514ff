//! What was not needed for the whole of the decay time: the least there was of it.
//!
//! ```text
//! pages kept   ▇▇▇▅▅▇▇▃▃▅▇▇▆▆      the decay time, in parts: lows 3 3 6 … ─▶ the least of them was never needed
//!                     └── part ─┘
//! ```

/// Parts of the decay time.
pub(crate) const DECAY_PARTS: usize = 4;

/// The least of a number of pages, part by part.
#[derive(Debug)]
pub(crate) struct Lows {
    /// Since the last tick.
    now: u64,
    /// In the parts before, the latest first.
    before: [u64; DECAY_PARTS],
}

impl Lows {
    pub(crate) const fn new() -> Lows {
        Lows { now: 0, before: [0; DECAY_PARTS] }
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

    /// So many of them went.
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
        let mut lows = Lows::new();
        // The first part began with nothing.
        let surplus: Vec<u64> = (0..=DECAY_PARTS).map(|_| lows.tick(100)).collect();
        assert_eq!(surplus, [0, 0, 0, 0, 100]);
        lows.note(30);
        lows.note(80);
        assert_eq!(lows.tick(100), 30);
        lows.gone(30);
        let surplus: Vec<u64> = (0..=DECAY_PARTS).map(|_| lows.tick(70)).collect();
        assert_eq!(surplus, [0, 0, 0, 70, 70], "the part in which 30 were left has to pass");
    }
}
