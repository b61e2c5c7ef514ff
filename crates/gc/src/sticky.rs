//! Marks that stay: cycles that follow only what is new.
//!
//! What a collection has found alive is *old*. If its marks are left as they are, and it is known what is written from then on, the
//! next cycle need not follow old objects again: what is alive is old, or is found from the roots and from old objects on
//! pages that were written to. Such a cycle is *partial*; one that takes every mark away first is *whole*.
//!
//! ```text
//! whole ──▶ partial ──▶ partial ──▶ ... ──▶ whole      old objects that died meanwhile go with this one
//! ```
//!
//! What it costs: a fault for each old page at its first write after a cycle, not only during one; and old objects that died stay until
//! the next whole cycle. So that one comes when they may be a quarter of the room, after [`PARTIAL_MAX`] at the latest; and where
//! partial cycles are not much cheaper than whole ones, as the program writes all over its old objects, or old objects die as fast as new
//! ones, they are left alone for a while.
//!
//! # Invariants
//! * While `known`, every allocated object that is marked was alive at the last collection, and what was written to since is
//!   in the heap's account (`dirty`); what is allocated is unmarked.
//! * A collection at one go, a cycle's first mark and whatever drops a cycle or the account make it not known.
//!
//! Source: Demers, Weiser, Hayes, Boehm, Bobrow and Shenker 1990, "Combining generational and conservative garbage collection". There old
//! objects are never looked at again but on request; here as often as it pays.

/// Partial cycles between two whole ones, at most.
const PARTIAL_MAX: u32 = 7;
/// What may be old and dead, as a part of the room.
const STALE_PART: usize = 4;
/// Partial cycles must take less than three of so many parts of what a whole one takes.
const DEAR_PARTS: u128 = 4;
/// Whole cycles between two tries where they do not.
const PATIENCE: u32 = 8;
/// What the first write to a page that is accounted for costs, in nanoseconds.
const FAULT_NS: u64 = 800;
/// Until one has been made, a partial cycle is taken to cost one part of so many of a whole one.
const PARTIAL_PART: u64 = 4;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Sticky {
    known: bool,
    /// Partial cycles since the last whole collection.
    partial: u32,
    /// Bytes alive after the last whole collection, and the room there was then.
    live: usize,
    room: usize,
    /// Nanoseconds that the last whole collection took, and the last partial cycle; 0: none was made.
    whole_ns: u64,
    partial_ns: u64,
    /// Whole cycles to make before the next partial one.
    patience: u32,
    /// The first partial cycle after a whole one has left so much alive that a whole one comes next.
    is_in_doubt: bool,
}

impl Sticky {
    pub(crate) const fn new() -> Sticky {
        Sticky {
            known: false,
            partial: 0,
            live: 0,
            room: 0,
            whole_ns: 0,
            partial_ns: 0,
            patience: 0,
            is_in_doubt: false,
        }
    }

    /// Marks mean nothing any more, or it is not known what was written.
    pub(crate) fn forget(&mut self) {
        self.known = false;
    }

    /// Whether the next cycle should be partial, with `live` bytes alive, be it by old marks alone.
    pub(crate) fn is_partial_next(&self, live: usize) -> bool {
        self.known && self.partial < PARTIAL_MAX && live <= self.live + self.room / STALE_PART
    }

    /// Nanoseconds that a partial cycle should take, if a whole collection should take `whole_ns`.
    pub(crate) fn partial_ns(&self, whole_ns: u64) -> u64 {
        if self.partial_ns == 0 { whole_ns / PARTIAL_PART } else { self.partial_ns.min(whole_ns) }
    }

    /// A whole collection has ended: it took `spent_ns`, and left `live` bytes and so much room.
    pub(crate) fn whole_ended(&mut self, spent_ns: u64, live: usize, room: usize) {
        // The heap had not grown: what was old has died.
        let was_in_vain =
            core::mem::take(&mut self.is_in_doubt) && live <= self.live + self.room / STALE_PART;
        self.patience = if was_in_vain { PATIENCE } else { self.patience.saturating_sub(1) };
        self.partial = 0;
        self.whole_ns = spent_ns;
        self.live = live;
        self.room = room;
    }

    /// A partial cycle has ended: it took `spent_ns` and left `live` bytes, and so many pages had been written by the program for the first
    /// time.
    pub(crate) fn partial_ended(&mut self, spent_ns: u64, live: usize, faults: usize) {
        self.partial += 1;
        self.partial_ns = spent_ns;
        let cost_ns = spent_ns + faults as u64 * FAULT_NS;
        // What a whole one would have taken, be there more or less alive now. A heap that grows gets a whole one next anyhow.
        let whole_ns = u128::from(self.whole_ns) * live.max(self.live) as u128 / self.live.max(1) as u128;
        let has_grown = live > self.live + self.room / STALE_PART;
        self.is_in_doubt |= has_grown && self.partial == 1;
        if !has_grown && u128::from(cost_ns) > whole_ns / DEAR_PARTS * (DEAR_PARTS - 1) {
            self.patience = PATIENCE;
        }
    }

    /// Bytes to hand out before the next cycle, with `live` bytes alive after a partial one: what is stale takes of the room, and the
    /// heap grows no larger for it; but where a whole cycle must come next, it finds the room it needs.
    pub(crate) fn room_left(&self, live: usize) -> usize {
        let stale = live.saturating_sub(self.live);
        self.room.saturating_sub(stale).max(self.room / STALE_PART)
    }

    /// Whether what is written should go on to be accounted for between cycles.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        self.patience == 0
    }

    /// The marks are those of a collection that has just ended, and the account goes on.
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
