//! The time between two scans of huge-page windows (`huge_window`) by the background thread.
//!
//! A scan costs some 20 µs of CPU time, which is the program's. A window that is moved too late costs the
//! program 512 faults. The rate of scans follows the program. There are a few scans in the time that the
//! program lately took to fill one huge page. Scans become rare when the program touches nothing more.
//!
//! ```text
//! window set         moved           moved                          nothing more is touched
//!    │ 30 30 30 .. µs │ ¼ ¼ ¼ ¼ ... │ ¼ ¼ ¼ ¼ ¼ ¼ ¼ ¼  ½   1    2 ..      8 ms ...  (a tick)
//! ```
//!
//! Each number is the time to the next scan; ¼, ½, 1 and 2 are parts of the time that the last move took.

/// Time between the first scans at a new window.
const FIRST_NS: u64 = 30_000;
/// The shortest time between scans where nothing depends on them.
const RELAXED_NS: u64 = 2_000_000;
/// The longest time between scans: a program needs about as long to touch a window by base pages.
const LONGEST_NS: u64 = 8_000_000;
/// Scans in the time that the last move took to come.
const SCANS_PER_MOVE: u64 = 4;
/// Time at one interval after a move, before the interval grows. A program that has overtaken its window
/// needs as long for a huge page's worth of base pages.
const PATIENCE_NS: u64 = 1_500_000;
/// The least scans at one interval.
const PATIENT_SCANS: u64 = 4;
/// Scans at [`LONGEST_NS`] that find nothing before windows are scanned once a tick only.
const VAIN_SCANS_MAX: u32 = 64;

pub(crate) struct Backoff {
    interval_ns: u64,
    /// Scans left before the interval grows.
    patience: u64,
    /// Scans at the longest interval that found nothing.
    vain: u32,
    /// When a window last moved, or a new one was seen.
    moved_ns: u64,
}

impl Backoff {
    pub(crate) const fn new() -> Backoff {
        Backoff { interval_ns: FIRST_NS, patience: patience(FIRST_NS), vain: 0, moved_ns: 0 }
    }

    pub(crate) fn begin(&mut self, now_ns: u64) {
        *self = Backoff { moved_ns: now_ns, ..Backoff::new() };
    }

    pub(crate) fn moved(&mut self, now_ns: u64) {
        let took = now_ns.saturating_sub(self.moved_ns);
        // A program that has overtaken its window is slowed by that, until the window is ahead again.
        let interval_ns = (took / SCANS_PER_MOVE).min(2 * self.interval_ns).clamp(FIRST_NS, LONGEST_NS);
        *self = Backoff { interval_ns, patience: patience(interval_ns), vain: 0, moved_ns: now_ns };
    }

    pub(crate) fn stood_still(&mut self) {
        if self.patience > 0 {
            self.patience -= 1;
        } else if self.interval_ns < LONGEST_NS {
            self.interval_ns = (self.interval_ns * 2).min(LONGEST_NS);
        } else {
            self.vain += 1;
        }
    }

    /// Only arenas' windows are left, which are scanned when memory is handed out, too: there is no hurry.
    pub(crate) fn relax(&mut self) {
        self.interval_ns = self.interval_ns.max(RELAXED_NS);
        self.patience = 0;
    }

    /// Memory near a window was handed out: there may be something to see again.
    pub(crate) fn resume(&mut self) {
        self.vain = 0;
    }

    /// Nanoseconds to the next scan; nothing when the next tick is soon enough.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (self.vain < VAIN_SCANS_MAX).then_some(self.interval_ns)
    }
}

/// Scans at an interval before it grows.
const fn patience(interval_ns: u64) -> u64 {
    let scans = PATIENCE_NS / interval_ns;
    if scans < PATIENT_SCANS { PATIENT_SCANS } else { scans }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_program_is_followed_and_a_slow_one_left_in_peace() {
        let mut backoff = Backoff::new();
        backoff.begin(1_000_000);
        backoff.moved(1_200_000);
        for _ in 0..patience(50_000) {
            assert_eq!(backoff.next_ns(), Some(50_000));
            backoff.stood_still();
        }
        backoff.stood_still();
        assert_eq!(backoff.next_ns(), Some(100_000));
        let slow = (1..10).map(|twentieth| {
            backoff.moved(1_200_000 + twentieth * 20_000_000);
            backoff.next_ns().expect("a window that moves is scanned")
        });
        let slow: Vec<u64> = slow.collect();
        assert!(slow.windows(2).all(|pair| pair[1] <= 2 * pair[0]), "{slow:?}");
        assert_eq!(slow.last(), Some(&5_000_000));
    }

    #[test]
    fn scans_end_and_resume() {
        let mut backoff = Backoff::new();
        let scans = (0..1000).take_while(|_| {
            backoff.stood_still();
            backoff.next_ns().is_some()
        });
        let scans = scans.count() as u32;
        assert!((VAIN_SCANS_MAX..VAIN_SCANS_MAX + 64).contains(&scans), "{scans}");
        backoff.resume();
        assert_eq!(backoff.next_ns(), Some(LONGEST_NS));
    }

    #[test]
    fn there_is_no_hurry_for_arenas() {
        let mut backoff = Backoff::new();
        backoff.begin(0);
        backoff.relax();
        assert_eq!(backoff.next_ns(), Some(RELAXED_NS));
        backoff.stood_still();
        assert_eq!(backoff.next_ns(), Some(2 * RELAXED_NS));
    }
}
