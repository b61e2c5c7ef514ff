//! Decides when the process's memory figures (`gauges`) are counted again. A count is followed by a pause at
//! least 200 times as long. Pauses grow while nothing happens.

/// The shortest pause after a count, in durations of the count.
const REST: u64 = 200;
/// The first pause between two counts while nothing happens, and the longest.
const STILL_NS: (u64, u64) = (500_000_000, 16_000_000_000);

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// The next count is not before this.
    next_ns: u64,
    /// The next count is not before this if nothing has happened.
    still_until_ns: u64,
    still_ns: u64,
    /// The number of events when the last count began.
    events: u64,
}

impl Backoff {
    pub(crate) fn is_due(&self, now_ns: u64, events: u64) -> bool {
        now_ns >= self.next_ns && (events != self.events || now_ns >= self.still_until_ns)
    }

    pub(crate) fn counted(&mut self, began_ns: u64, ended_ns: u64, events: u64) {
        let is_still = events == self.events;
        self.still_ns = if is_still { (self.still_ns * 2).clamp(STILL_NS.0, STILL_NS.1) } else { STILL_NS.0 };
        self.next_ns = ended_ns + (ended_ns - began_ns) * REST;
        self.still_until_ns = ended_ns + self.still_ns;
        self.events = events;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_takes_a_small_share_of_the_time() {
        let mut backoff = Backoff::default();
        assert!(backoff.is_due(0, 1));
        backoff.counted(1000, 1_001_000, 1);
        let rest = REST * 1_000_000;
        assert!(!backoff.is_due(1_001_000 + rest - 1, 2), "even while much happens");
        assert!(backoff.is_due(1_001_000 + rest, 2));
    }

    #[test]
    fn where_nothing_happens_it_becomes_seldom() {
        let mut backoff = Backoff::default();
        let (mut now, mut pauses) = (0, std::vec::Vec::new());
        for _ in 0..8 {
            backoff.counted(now, now, 5);
            assert!(!backoff.is_due(backoff.still_until_ns - 1, 5) && backoff.is_due(now, 6));
            pauses.push((backoff.still_until_ns - now) / 1_000_000);
            now = backoff.still_until_ns;
            assert!(backoff.is_due(now, 5));
        }
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 16_000, 16_000]);
    }
}
