//! Sticky marks: decides when marks are kept, so that the next *cycle* (collection) traces only new objects.
//!
//! Objects that a collection has found alive are *old*. Their marks may be kept if writes are tracked from
//! then on. The next cycle need not trace old objects again: every live object is old, or is reached from the
//! roots and from old objects on written pages. Such a cycle is *partial*; a cycle that clears every mark
//! first is *whole*.
//!
//! ```text
//! whole ──▶ partial ──▶ partial ──▶ ... ──▶ whole   this one frees old objects that died meanwhile
//! ```
//!
//! Keeping marks has two costs. Each old page faults at its first write after any cycle, not only during one.
//! Old objects that died stay until the next whole cycle, which comes when such objects may fill a quarter of
//! the allocation budget, or after [`PARTIAL_MAX`] partial ones.
//!
//! If the program writes to most old objects, or old objects die as fast as new ones, partial cycles save
//! little. No partial cycles are made for a while then.
//!
//! # Invariants
//! * While `known`, every allocated object that is marked was alive at the last collection, and all writes
//!   since then are in the heap's record of writes (`write_tracking`); new objects are unmarked.
//! * `known` becomes false by a collection in one stop, by the first mark of a cycle, and when a cycle or
//!   the record of writes is dropped.
//!
//! Source: Demers, Weiser, Hayes, Boehm, Bobrow and Shenker 1990, "Combining generational and conservative
//! garbage collection". In their collector, old objects are traced again only on request; here as often as
//! it pays.

/// Partial cycles between two whole ones, at most.
const PARTIAL_MAX: u32 = 15;
/// The bytes of old objects that may be dead, as a part of the allocation budget.
const STALE_PART: usize = 4;
/// A partial cycle must take less than a whole one by at least one part in this many.
const DEAR_PARTS: u128 = 4;
/// Whole cycles between two tries where they do not.
const PATIENCE: u32 = 8;
/// The cost of the first write to a page whose writes are tracked, in nanoseconds.
const FAULT_NS: u64 = 800;
/// Until one has been made, a partial cycle is assumed to cost one part in this many of a whole one.
const PARTIAL_PART: u64 = 4;

#[derive(Debug)]
pub(crate) struct Sticky {
    known: bool,
    /// Partial cycles since the last whole collection.
    partial: u32,
    /// Bytes alive after the last whole collection, and the allocation budget then.
    live: usize,
    room: usize,
    /// Nanoseconds that the last whole collection took, and the last partial cycle; 0: none was made.
    whole_ns: u64,
    partial_ns: u64,
    /// Whole cycles to make before the next partial one.
    patience: u32,
    /// The first partial cycle after a whole one has left many bytes alive: a whole one comes next.
    is_in_doubt: bool,
}

impl Sticky {
    pub(crate) const fn new() -> Sticky {
        // SAFETY: every field is a number or a flag.
        unsafe { core::mem::zeroed() }
    }

    /// Marks mean nothing any more, or writes were not tracked.
    pub(crate) fn forget(&mut self) {
        self.known = false;
    }

    /// Returns whether the next cycle should be partial, with `live` bytes alive, by marks and past cycles.
    pub(crate) fn is_partial_next(&self, live: usize) -> bool {
        self.known && self.partial < PARTIAL_MAX && live <= self.live + self.room / STALE_PART
    }

    /// Nanoseconds that a partial cycle should take, if a whole collection should take `whole_ns`.
    pub(crate) fn partial_ns(&self, whole_ns: u64) -> u64 {
        if self.partial_ns == 0 { whole_ns / PARTIAL_PART } else { self.partial_ns.min(whole_ns) }
    }

    /// A whole collection has ended: it took `spent_ns`, and left `live` bytes and the budget `room`.
    pub(crate) fn whole_ended(&mut self, spent_ns: u64, live: usize, room: usize) {
        // The heap had not grown: old objects had died.
        let was_in_vain =
            core::mem::take(&mut self.is_in_doubt) && live <= self.live + self.room / STALE_PART;
        self.patience = if was_in_vain { PATIENCE } else { self.patience.saturating_sub(1) };
        self.partial = 0;
        self.whole_ns = spent_ns;
        self.live = live;
        self.room = room;
    }

    /// A partial cycle has ended: it took `spent_ns` and left `live` bytes. The program had written `faults`
    /// pages for the first time since the cycle before.
    pub(crate) fn partial_ended(&mut self, spent_ns: u64, live: usize, faults: usize) {
        self.partial += 1;
        self.partial_ns = spent_ns;
        let cost_ns = spent_ns + faults as u64 * FAULT_NS;
        // The cost of a whole one with as much alive. A heap that grows gets a whole one next anyhow.
        let whole_ns = u128::from(self.whole_ns) * live.max(self.live) as u128 / self.live.max(1) as u128;
        let has_grown = live > self.live + self.room / STALE_PART;
        self.is_in_doubt |= has_grown && self.partial == 1;
        if !has_grown && u128::from(cost_ns) > whole_ns / DEAR_PARTS * (DEAR_PARTS - 1) {
            self.patience = PATIENCE;
        }
    }

    /// The allocation budget before the next cycle, with `live` bytes alive after a partial one. Stale bytes
    /// reduce it, so that the heap does not grow for them. Where a whole cycle must come next, that one finds
    /// the budget it needs.
    pub(crate) fn room_left(&self, live: usize) -> usize {
        let stale = live.saturating_sub(self.live);
        self.room.saturating_sub(stale).max(self.room / STALE_PART)
    }

    /// Returns whether writes should be tracked between cycles.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        self.patience == 0
    }

    /// The marks are those of a collection that has just ended, and writes are still tracked.
    pub(crate) fn know(&mut self) {
        self.known = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;
    const MS: u64 = 1_000_000;

    fn after_whole() -> Sticky {
        let mut sticky = Sticky::new();
        sticky.whole_ended(20 * MS, 64 * MIB, 48 * MIB);
        sticky.know();
        sticky
    }

    #[test]
    fn a_whole_cycle_comes_by_number_and_by_what_may_be_stale() {
        let mut sticky = Sticky::new();
        assert!(!sticky.is_partial_next(0), "nothing is known at first");
        sticky = after_whole();
        assert!(sticky.is_partial_next(76 * MIB) && !sticky.is_partial_next(77 * MIB));
        for _ in 0..PARTIAL_MAX {
            assert!(sticky.is_partial_next(64 * MIB));
            sticky.partial_ended(3 * MS, 64 * MIB, 100);
        }
        assert_eq!([60, 64, 70, 120].map(|live| sticky.room_left(live * MIB) / MIB), [48, 48, 42, 12]);
        assert!(!sticky.is_partial_next(64 * MIB) && sticky.is_worth_keeping());
        sticky.forget();
        sticky.whole_ended(20 * MS, 64 * MIB, 48 * MIB);
        assert!(!sticky.is_partial_next(64 * MIB), "what is written is not known");
    }

    #[test]
    fn what_costs_as_much_as_a_whole_cycle_is_left_alone_for_a_while() {
        let mut sticky = after_whole();
        assert_eq!(sticky.partial_ns(20 * MS), 5 * MS);
        sticky.partial_ended(4 * MS, 64 * MIB, 20_000);
        assert!(!sticky.is_worth_keeping(), "the program has met 16 ms of faults");
        assert_eq!(sticky.partial_ns(20 * MS), 4 * MS);
        for _ in 0..PATIENCE {
            assert!(!sticky.is_worth_keeping());
            sticky.whole_ended(20 * MS, 64 * MIB, 48 * MIB);
        }
        assert!(sticky.is_worth_keeping());
        sticky.know();
        sticky.partial_ended(4 * MS, 100 * MIB, 0);
        assert!(!sticky.is_partial_next(100 * MIB) && sticky.is_worth_keeping());
        sticky.whole_ended(30 * MS, 100 * MIB, 75 * MIB);
        assert!(sticky.is_worth_keeping(), "the heap had grown");
        sticky.know();
        sticky.partial_ended(4 * MS, 140 * MIB, 0);
        sticky.whole_ended(30 * MS, 100 * MIB, 75 * MIB);
        assert!(!sticky.is_worth_keeping(), "what was old had died");
    }
}
