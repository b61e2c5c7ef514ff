//! The number of pages that stayed cached during the whole decay time: the least number cached at any moment.
//!
//! ```text
//! pages cached    ▇▇▇▅ ▅▇▇▃ ▃▅▇▇ ▆▆▇▇      the decay time, in parts
//! least of each      5    3    3    6  ─▶  the least of all: 3
//! ```

/// For how long, at least, the least headroom is remembered, in milliseconds.
const HEADROOM_MS: u64 = 500;

/// The least headroom that was seen of late. The kernel takes marked memory as soon as others need it, and in
/// large pieces, so one moment's headroom does not predict their need at the next.
#[derive(Debug)]
pub(crate) struct LeastHeadroom {
    /// When `now` began.
    began_ms: u64,
    /// The least since then, and in the time before.
    now: u64,
    before: u64,
}

impl LeastHeadroom {
    pub(crate) const fn new() -> LeastHeadroom {
        LeastHeadroom { began_ms: 0, now: u64::MAX, before: u64::MAX }
    }

    /// There are `bytes` at `now_ms`: the least of the last [`HEADROOM_MS`], and up to as long before.
    pub(crate) fn note(&mut self, bytes: u64, now_ms: u64) -> u64 {
        let passed = now_ms.wrapping_sub(self.began_ms);
        if passed >= HEADROOM_MS {
            self.before = if passed < 2 * HEADROOM_MS { self.now } else { u64::MAX };
            (self.began_ms, self.now) = (now_ms, u64::MAX);
        }
        self.now = self.now.min(bytes);
        self.now.min(self.before)
    }
}

pub(crate) const DECAY_PARTS: usize = 4;

/// The least of a number of pages, part by part.
#[derive(Debug)]
pub(crate) struct LowWater {
    now: u64,
    /// In the parts before, the latest first.
    before: [u64; DECAY_PARTS],
}

impl LowWater {
    pub(crate) const fn new() -> LowWater {
        LowWater { now: 0, before: [0; DECAY_PARTS] }
    }

    pub(crate) fn note(&mut self, pages: u64) {
        self.now = self.now.min(pages);
    }

    /// Ends a part of the decay time. Returns how many of `pages` were not needed for the whole decay time.
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

    /// Records that `pages` of these pages went.
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
    fn the_least_headroom_is_remembered_for_a_while() {
        let mut least = LeastHeadroom::new();
        let seen = [(1000, 90), (1100, 30), (1499, 80), (1500, 70), (1999, 60), (2000, 80), (5000, 90)];
        assert_eq!(seen.map(|(ms, bytes)| least.note(bytes, ms)), [90, 30, 30, 30, 30, 60, 90]);
    }

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
