//! The clock of the background thread (`helper`), which ages free pages. The decay time, after which unused
//! pages are returned, has [`DECAY_PARTS`] parts of one or more ticks each.
//!
//! The thread ticks often enough to detect rising memory pressure, however long the decay time is. A part of
//! a long decay time therefore has several ticks. The clock outlives the thread. In a process that forks
//! again and again, many such threads follow each other, and free pages still age.

use crate::low_water::DECAY_PARTS;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The shortest and the longest tick, in milliseconds.
pub(crate) const TICK_MS: (u64, u64) = (10, 250);

/// The time between two ticks of the helper, in milliseconds.
pub(crate) fn tick_ms(decay_ms: u32) -> u64 {
    (part_ms(decay_ms) / u64::from(ticks_of_part(decay_ms))).max(TICK_MS.0)
}

fn part_ms(decay_ms: u32) -> u64 {
    u64::from(decay_ms) / DECAY_PARTS as u64
}

/// The ticks of a part of the decay time.
pub(crate) fn ticks_of_part(decay_ms: u32) -> u32 {
    part_ms(decay_ms).div_ceil(TICK_MS.1).max(1) as u32
}

/// Counts ticks. Only the helper does; each is alone in its time.
#[derive(Debug)]
pub(crate) struct DecayClock {
    /// When it ticked last, in milliseconds; 0 before the first helper.
    ticked_ms: AtomicU64,
    /// The ticks of the part that has begun.
    ticks: AtomicU32,
}

impl DecayClock {
    pub(crate) const fn new() -> DecayClock {
        DecayClock { ticked_ms: AtomicU64::new(0), ticks: AtomicU32::new(0) }
    }

    /// In a forked child, whose free pages are as good as new.
    pub(crate) fn reset_after_fork(&self) {
        self.ticked_ms.store(0, Relaxed);
        self.ticks.store(0, Relaxed);
    }

    pub(crate) fn begin(&self, now_ms: u64) {
        if self.ticked_ms.load(Relaxed) == 0 {
            self.ticked_ms.store(now_ms, Relaxed);
        }
    }

    /// Returns a value if a tick is due: true if a part of the decay time ends with it.
    pub(crate) fn tick(&self, now_ms: u64, decay_ms: u32) -> Option<bool> {
        if now_ms.wrapping_sub(self.ticked_ms.load(Relaxed)) < tick_ms(decay_ms) {
            return None;
        }
        self.ticked_ms.store(now_ms, Relaxed);
        let ticks = self.ticks.load(Relaxed) + 1;
        let is_over = ticks >= ticks_of_part(decay_ms);
        self.ticks.store(if is_over { 0 } else { ticks }, Relaxed);
        Some(is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn many_short_lived_helpers_tick_as_one_does() {
        let clock = DecayClock::new();
        // Each lives for 100 ms; a tick of 250 ms falls into every third.
        let parts = (1..=400).filter(|turn| {
            clock.begin(turn * 100);
            clock.tick(turn * 100, 1000) == Some(true)
        });
        assert_eq!(parts.count(), 133);
    }

    #[test]
    fn a_decay_time_is_as_long_as_was_asked_for() {
        for decay_ms in [40, 100, 999, 1000, 1001, 1400, 2000, 8000, 60_000, 123_456, Config::DECAY_MS_MAX] {
            let tick = tick_ms(decay_ms);
            assert!((TICK_MS.0..=TICK_MS.1).contains(&tick));
            let clock = DecayClock::new();
            clock.begin(1);
            let ticks = (1..).scan(0, |parts, ticks: u64| {
                *parts += usize::from(clock.tick(1 + ticks * tick, decay_ms)?);
                Some((ticks, *parts))
            });
            let (ticks, _) = { ticks }.find(|(_, parts)| *parts == DECAY_PARTS).unwrap();
            let time = ticks * tick;
            // Ticks are whole milliseconds.
            let rounding = u64::from(decay_ms) / 50 + DECAY_PARTS as u64;
            assert!(time.abs_diff(u64::from(decay_ms)) <= rounding, "{time} of {decay_ms}");
            assert_eq!(u64::from(ticks_of_part(decay_ms)) * DECAY_PARTS as u64, ticks);
        }
        assert_eq!((tick_ms(0), ticks_of_part(0)), (TICK_MS.0, 1));
        assert_eq!((tick_ms(1000), ticks_of_part(1000)), (250, 1));
    }
}
