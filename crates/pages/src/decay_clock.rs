//! The helper's ticks, and how many of them are a part of the decay time.
//!
//! The helper ticks often enough to see pressure come, however long free pages may stay: of a long decay time
//! several ticks make one part.

use crate::low_water::DECAY_PARTS;

/// The shortest and the longest tick, in milliseconds.
pub(crate) const TICK_MS: (u64, u64) = (10, 250);

/// How often the helper ticks, in milliseconds.
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

/// Counts ticks.
#[derive(Debug, Default)]
pub(crate) struct DecayClock {
    ticks: u32,
}

impl DecayClock {
    /// The helper ticks: whether a part of the decay time has passed by that.
    pub(crate) fn tick(&mut self, decay_ms: u32) -> bool {
        self.ticks += 1;
        let is_over = self.ticks >= ticks_of_part(decay_ms);
        if is_over {
            self.ticks = 0;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn a_decay_time_is_as_long_as_was_asked_for() {
        for decay_ms in [40, 100, 999, 1000, 1001, 1400, 2000, 8000, 60_000, 123_456, Config::DECAY_MS_MAX] {
            let tick = tick_ms(decay_ms);
            assert!((TICK_MS.0..=TICK_MS.1).contains(&tick));
            let mut clock = DecayClock::default();
            let ticks = (1..).scan(0, |parts, tick: u64| {
                *parts += usize::from(clock.tick(decay_ms));
                Some((tick, *parts))
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
