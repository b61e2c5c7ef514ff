//! Anchors: convert a clock's ticks to `CLOCK_MONOTONIC`.
//!
//! Observations' starts and collectors' marks are times of `CLOCK_MONOTONIC`; stamps come from faster clocks.
//! An anchor is one instant on both clocks. Two anchors, before and after a series, determine every instant
//! between. A rate found beforehand would not do: the network time daemon steers `CLOCK_MONOTONIC` by up to
//! 500 ppm (half a millisecond a second).

use super::{Clock, monotonic_ns};

/// The number of tries for an anchor; the tightest counts.
const TRIES: usize = 8;

/// An instant on a clock and on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The clock's ticks.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub monotonic_ns: u64,
}

impl Anchor {
    /// An anchor at the present instant.
    #[must_use]
    pub fn now(clock: &Clock) -> Anchor {
        let mut best = (u64::MAX, Anchor { ticks: 0, monotonic_ns: 0 });
        for _ in 0..TRIES {
            let before = clock.stamp();
            let monotonic_ns = monotonic_ns();
            let width = clock.stamp().saturating_sub(before);
            if width < best.0 {
                best = (width, Anchor { ticks: before + width / 2, monotonic_ns });
            }
        }
        best.1
    }

    /// The instant of `ticks` on `CLOCK_MONOTONIC`, between this anchor and a `later` one.
    #[must_use]
    pub fn place(&self, later: &Anchor, clock: &Clock, ticks: u64) -> u64 {
        let rate = if later.ticks > self.ticks {
            (later.monotonic_ns - self.monotonic_ns) as f64 / (later.ticks - self.ticks) as f64
        } else {
            clock.ns_per_tick()
        };
        // Ticks wrap round like the counter. A signed distance stays exact; an absolute value would be
        // rounded.
        let away = ticks.wrapping_sub(self.ticks).cast_signed() as f64 * rate;
        self.monotonic_ns.saturating_add_signed(away as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockKind;

    #[test]
    fn instants_lie_on_the_line_between_two_anchors() {
        let clock = Clock::open(ClockKind::Monotonic).unwrap();
        let first = Anchor { ticks: 1000, monotonic_ns: 70 };
        let last = Anchor { ticks: 3000, monotonic_ns: 1070 };
        assert_eq!(first.place(&last, &clock, 2000), 570);
        assert_eq!(first.place(&last, &clock, 900), 20);
        assert_eq!(first.place(&last, &clock, 0), 0, "before the machine started is its start");
        assert_eq!(first.place(&first, &clock, 1005), 75, "one anchor: the clock's own rate");
    }
}
