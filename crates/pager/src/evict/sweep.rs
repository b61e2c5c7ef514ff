//! The choice of the pages to evict.
//!
//! Discardable pages go first, unwritten. Then a position (the *hand*) goes round the store, as in the clock
//! algorithm. Each move takes a *round*: a run of at most 1/32 of the frames. The round is unmapped, and its
//! changed pages begin to be written. Four rounds later its pages are dropped. If the program has touched a
//! page meanwhile, the kernel has mapped it again without reading, and the page is kept. This is a clock's
//! second chance (Cooper, Nettles and Subramanian 1992, section 4), for rounds instead of pages.

use super::{Evictor, gate, in_store};
use crate::stats;
use crate::trouble;
use crate::units::STEP;
use vellum_sys::map;

/// Rounds between a round's unmapping and its dropping.
const DEPTH: usize = 4;
/// The part of the frames that a round takes; its fewest and most pages.
const PART: u32 = 32;
const PAGES_MIN: u32 = 4;
const PAGES_MAX: u32 = 256;
/// Pages that are looked at together for a round, of which it may have too many then.
const WINDOW: u32 = 32;
/// Rounds one after the other that drop nothing before the next look: what they hold is in use.
const FRUITLESS: u32 = 8;

/// Pages that leave together: a run within a step.
#[derive(Clone, Copy, Debug)]
struct Round {
    from: u32,
    to: u32,
    /// The number of its pages that were in memory, and whether any had changed.
    pages: u32,
    has_changed: bool,
}

/// The place of the hand, and the rounds that are unmapped, the oldest first.
#[derive(Debug)]
pub(super) struct Sweep {
    place: u32,
    offset: u32,
    rounds: [Option<Round>; DEPTH],
}

impl Sweep {
    pub(super) const fn new() -> Sweep {
        Sweep { place: 0, offset: 0, rounds: [None; DEPTH] }
    }

    /// Pages that are probably in memory and not mapped.
    pub(super) fn unmapped(&self) -> u32 {
        self.rounds.iter().flatten().map(|round| round.pages).sum()
    }

    fn is_full(&self) -> bool {
        self.rounds[DEPTH - 1].is_some()
    }

    fn push(&mut self, round: Round) {
        if let Some(free) = self.rounds.iter_mut().find(|round| round.is_none()) {
            *free = Some(round);
        }
    }

    fn pop(&mut self) {
        self.rounds[0] = None;
        self.rounds.rotate_left(1);
    }
}

impl Evictor {
    /// Evicts until at most `goal` pages are in memory; or until a request waits, or nothing can go now.
    pub(super) fn evict(&mut self, goal: u32) {
        self.drop_discardable(goal);
        let mut fruitless = 0;
        while self.level > goal && fruitless < FRUITLESS && !self.pager.post.is_asked() {
            self.set_gate();
            if !self.sweep.is_full() && self.unmap_round() {
                continue;
            }
            let Some(oldest) = self.sweep.rounds[0] else { return };
            let Some(gone) = self.drop_round(oldest) else { return };
            self.sweep.pop();
            fruitless = if gone == 0 { fruitless + 1 } else { 0 };
            self.arrivals();
        }
    }

    fn drop_discardable(&mut self, goal: u32) {
        let tables = self.pager.tables();
        let (needed, cached) = (tables.needed(), tables.cached());
        for index in 0..self.pager.high().div_ceil(u64::BITS) {
            if self.level <= goal || self.pager.post.is_asked() {
                return;
            }
            if cached.word(index) & !needed.word(index) != 0 {
                // As much as follows within the step, in one call.
                let from = index * u64::BITS;
                let end = (from / STEP + 1) * STEP;
                self.discard(from, end);
            }
        }
    }

    /// Drops what of pages `from..to` of one step is in memory and discardable.
    fn discard(&mut self, from: u32, to: u32) {
        let (pager, store) = (self.pager, self.store);
        let tables = pager.tables();
        if tables.needed().count(from, to) == to - from {
            return;
        }
        let gone = pager.announced.during(from, to, || {
            let mut gone = 0;
            for (first, end) in tables.needed().runs(from, to, false) {
                let pages = tables.cached().count(first, end);
                if pages == 0 {
                    continue;
                }
                if let Err(errno) = store.zero(in_store(pager, first), end - first) {
                    trouble::stop("cannot discard pages of the store", errno);
                }
                for bits in [tables.used(), tables.contents(), tables.cached()] {
                    bits.clear(first, end);
                }
                gone += pages;
            }
            gone
        });
        stats::add(&pager.stats.discarded, gone);
        self.level = self.level.saturating_sub(gone);
    }

    /// Unmaps the next pages of the store, and begins to write them. False if none are in memory.
    fn unmap_round(&mut self) -> bool {
        let wanted = (self.frames / PART).clamp(PAGES_MIN, PAGES_MAX);
        for _ in 0..=self.places {
            if self.sweep.place >= self.places {
                self.sweep.place = 0;
            }
            if self.places == 0 {
                return false;
            }
            let step = self.step_at(self.sweep.place);
            let from = step * STEP + self.sweep.offset;
            let end = (step + 1) * STEP;
            let is_empty = self.sweep.offset == 0 && self.count_step(step) == 0;
            let (mut to, mut pages) = (if is_empty { end } else { from }, 0);
            while to < end && pages < wanted {
                let next = end.min(to + WINDOW);
                pages += self.scan(to, next).0;
                to = next;
            }
            self.sweep.offset = to - step * STEP;
            if to == end {
                self.sweep.offset = 0;
                self.sweep.place += 1;
            }
            if pages > 0 {
                self.unmap(Round { from, to, pages, has_changed: false });
                return true;
            }
        }
        false
    }

    fn unmap(&mut self, mut round: Round) {
        let Round { from, to, pages, .. } = round;
        // SAFETY: a shared mapping: what the pages hold stays in the store's pages in memory. Refused for
        // what the program has locked, which stays.
        let _ = unsafe { map::flush(self.pager.range(from, to)) };
        self.discard(from, to);
        let at = in_store(self.pager, from);
        let changed = self.store.cached(at, to - from).map_or(pages, |found| found.changed);
        round.has_changed = changed > 0;
        if round.has_changed {
            stats::add(&self.pager.stats.written, changed);
            if let Err(errno) = self.store.write(at, to - from) {
                trouble::stop("cannot write to the store", errno);
            }
        }
        self.sweep.push(round);
    }

    /// Drops the pages of a round that were not touched again; how many. `None` while they are being written.
    fn drop_round(&mut self, round: Round) -> Option<u32> {
        let Round { from, to, has_changed, .. } = round;
        let at = in_store(self.pager, from);
        if has_changed {
            let is_written = || self.store.cached(at, to - from).is_none_or(|found| found.in_transit == 0);
            if !gate::is_shut(self.pager) && !is_written() {
                return None;
            }
            if let Err(errno) = self.store.wait(at, to - from) {
                trouble::stop("cannot write to the store", errno);
            }
        }
        let before = self.pager.tables().cached().count(from, to);
        self.store.drop_unmapped(at, to - from);
        let (after, newly) = self.scan(from, to);
        let arrived: u32 = newly.iter().map(|bits| bits.count_ones()).sum();
        let gone = (before + arrived).saturating_sub(after);
        self.level = self.level.saturating_sub(gone);
        Some(gone)
    }
}
