//! Anchors, which convert a clock's ticks to times of `CLOCK_MONOTONIC`.
//!
//! Starts of observations and spans of collector work (marks) are times of `CLOCK_MONOTONIC`; clock readings
//! (stamps) come from faster clocks. An anchor is one instant on both clocks. One anchor is taken before a
//! series and one after it; instants between them are interpolated. A rate measured beforehand would be
//! wrong: the network time daemon steers `CLOCK_MONOTONIC` by up to 500 ppm (half a millisecond per second).

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

/// An instant on a counter and on a clock of the kernel: the clock was read between two readings of the
/// counter, whose middle is taken.
pub(super) struct Bracket {
    pub(super) ticks: u64,
    pub(super) ns: u64,
    /// Ticks between the two readings.
    pub(super) width: u64,
}

impl Bracket {
    /// The tightest of `tries` brackets.
    #[inline(always)]
    pub(super) fn tightest(tries: usize, stamp: impl Fn() -> u64, clock: impl Fn() -> u64) -> Bracket {
        let bracket = || {
            let before = stamp();
            let ns = clock();
            let width = stamp().saturating_sub(before);
            Bracket { ticks: before + width / 2, ns, width }
        };
        let first = bracket();
        (1..tries)
            .map(|_| bracket())
            .fold(first, |best, next| if next.width < best.width { next } else { best })
    }
}

impl Anchor {
    /// An anchor at the present instant.
    #[must_use]
    pub fn now(clock: &Clock) -> Anchor {
        let found = Bracket::tightest(TRIES, || clock.stamp(), monotonic_ns);
        Anchor { ticks: found.ticks, monotonic_ns: found.ns }
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
