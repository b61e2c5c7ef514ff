//! The figures of `figures` on the board: when they are counted.
//!
//! Counting visits every slab, so the helper does it, for a small share of the time; while nothing happens in
//! the heaps, more and more seldom. It is done once more when the process ends.

use crate::figures::figures;
use crate::{background, pass, registry};
use vellum_pages::Pages;
use vellum_sys::clock;
use vellum_sys::lock::Guarded;
use vellum_wire::Counter;

/// How many times as long as a count took, there is none after it.
const REST: u64 = 200;
/// The first pause between two counts while nothing happens, and the longest.
const STILL_NS: (u64, u64) = (500_000_000, 16_000_000_000);

static PACE: Guarded<Pace> = Guarded::new(Pace::new());

/// When to count next.
#[derive(Debug)]
struct Pace {
    /// Not before this.
    next_ns: u64,
    /// If nothing has happened: not before this either.
    still_until_ns: u64,
    still_ns: u64,
    /// What had happened when the last count began.
    events: u64,
}

impl Pace {
    const fn new() -> Pace {
        Pace { next_ns: 0, still_until_ns: 0, still_ns: 0, events: 0 }
    }

    fn is_due(&self, now_ns: u64, events: u64) -> bool {
        now_ns >= self.next_ns && (events != self.events || now_ns >= self.still_until_ns)
    }

    fn counted(&mut self, began_ns: u64, ended_ns: u64, events: u64) {
        let is_still = events == self.events;
        self.still_ns = if is_still { (self.still_ns * 2).clamp(STILL_NS.0, STILL_NS.1) } else { STILL_NS.0 };
        self.next_ns = ended_ns + (ended_ns - began_ns) * REST;
        self.still_until_ns = ended_ns + self.still_ns;
        self.events = events;
    }
}

/// A number that changes with what threads do on their slow paths, and with what goes back.
fn events(live: u64) -> u64 {
    let turns = registry::all().map(|heap| u64::from(heap.gate.turns()));
    turns.fold(live.wrapping_add(pass::returned() as u64), u64::wrapping_add)
}

/// Has the helper count and publish now and then.
pub fn publish_at_ticks() {
    background::after_rounds(publish_if_due);
}

/// Counts and publishes, if it is time to. Under the lock of the helper's round.
fn publish_if_due() {
    let began = clock::now_ns();
    let events = events(Pages::global().slot().get(Counter::NowLive));
    if PACE.lock().is_due(began, events) {
        publish();
        PACE.lock().counted(began, clock::now_ns(), events);
    }
}

/// Counts what is in use, and tells the process's counters.
pub fn publish() {
    Pages::global().book_inside();
    let slot = Pages::global().slot();
    let figures = figures(slot.get(Counter::NowLive) as usize);
    slot.set(Counter::NowInUse, figures.in_use as u64);
    slot.set(Counter::NowFreeInSlabs, figures.free_in_slabs as u64);
    slot.set(Counter::NowReturned, figures.returned as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_takes_a_small_share_of_the_time() {
        let mut pace = Pace::new();
        assert!(pace.is_due(0, 1));
        pace.counted(1000, 1_001_000, 1);
        let rest = REST * 1_000_000;
        assert!(!pace.is_due(1_001_000 + rest - 1, 2), "even while much happens");
        assert!(pace.is_due(1_001_000 + rest, 2));
    }

    #[test]
    fn where_nothing_happens_it_becomes_seldom() {
        let mut pace = Pace::new();
        let (mut now, mut pauses) = (0, std::vec::Vec::new());
        for _ in 0..8 {
            pace.counted(now, now, 5);
            assert!(!pace.is_due(pace.still_until_ns - 1, 5) && pace.is_due(now, 6));
            pauses.push((pace.still_until_ns - now) / 1_000_000);
            now = pace.still_until_ns;
            assert!(pace.is_due(now, 5));
        }
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 16_000, 16_000]);
    }
}
