//! Freeing a block: the kind of its pages, and what is dropped with it.
//!
//! Its pages turn warm where they are resident and cold elsewhere. A block whose mapping the program changed
//! is mapped anew, and then cold.

use crate::huge_window::Range;
use crate::pages::Pages;
use crate::release::Reason;
use crate::state::{LARGE, State};
use crate::survey::Survey;
use crate::tag::{Kind, PageNo, flag};
use crate::units::{PAGE, UNIT_PAGES};
use vellum_sys::lock::Held;
use vellum_sys::map;
use vellum_wire::Counter;

/// Whether it is to be found out what of a freed extent is resident: where that is not known, and frames
/// may go.
fn is_looked_at(state: &State, flags: u8) -> bool {
    let unknown = flag::UNTOUCHED;
    flags & (unknown | flag::TAINTED | flag::ENTRY | flag::SEALED) == unknown
        && !state.still
        && state.config.discard.decays()
}

impl Pages {
    /// Gives the used extent at `page` back, and does what follows.
    pub(crate) fn give_back(&self, mut state: Held<'_, State>, arena: usize, page: PageNo) {
        let flags = state.arenas[arena].flags(page);
        let Ok(pages) = state.arenas[arena].used_at(page) else { return };
        state.before_free();
        if !is_looked_at(&state, flags) {
            self.free_extent(&mut state, arena, page);
            return self.after_free(state, pages);
        }
        // Nobody's, while it is looked at without the lock.
        state.arenas[arena].set_flags(page, flag::AWAY);
        self.note_gone(&mut state, arena, page, pages);
        state.live -= u64::from(pages);
        state.away += 1;
        let start = state.arenas[arena].address(page);
        let end = start + pages as usize * PAGE;
        if (start..end).contains(&state.probe) {
            state.probe = 0;
        }
        drop(state);
        let kept = flags & flag::HUGE;
        let survey = Survey::of(start, pages as usize);
        let (mut is_sparse, mut is_full) = (true, false);
        match survey {
            Survey::Whole => {
                (is_sparse, is_full) = (false, true);
                self.put_part(arena, start, end, Kind::Warm, kept);
            }
            Survey::Empty(lost) => self.drop_part(arena, start, end, lost, kept),
            Survey::Parts(parts) => {
                let mut at = start;
                is_full = true;
                while at < end {
                    let run = parts.next(at, end);
                    if run.from > at {
                        is_full = false;
                        self.drop_part(arena, at, run.from, run.lost, kept);
                    }
                    if run.to > run.from {
                        is_sparse = false;
                        self.put_part(arena, run.from, run.to, Kind::Warm, kept);
                    }
                    at = run.to;
                }
            }
        }
        let mut state = self.state.lock();
        state.away -= 1;
        state.sparse.set(pages, is_sparse && pages > UNIT_PAGES);
        state.full.set(pages, is_full);
        self.after_free(state, pages);
    }

    /// Lets go of the frames of a part of an extent that is nobody's, of which about `lost` pages have any.
    fn drop_part(&self, arena: usize, start: usize, end: usize, lost: usize, flags: u8) {
        let pages = ((end - start) / PAGE) as u32;
        let kind = self.let_go(start, pages, flags, false);
        self.put_part(arena, start, end, kind, flags);
        self.sweep_tables(pages);
        let mut state = self.state.lock();
        if kind == Kind::Cold {
            state.resident.shrink(lost as u64);
            state.count(Reason::Asked.counter(), (lost * PAGE) as u64);
        }
    }

    /// Makes the first part of an extent that is nobody's free, as `kind`.
    fn put_part(&self, arena: usize, start: usize, end: usize, kind: Kind, flags: u8) {
        let mut state = self.state.lock();
        let arena = &mut state.arenas[arena];
        let (page, pages) = (arena.page(start), ((end - start) / PAGE) as u32);
        if arena.used_at(page).is_ok_and(|all| all > pages) {
            arena.split(page, pages);
        }
        arena.set_flags(page, flags);
        arena.free_extent(page, kind);
    }

    /// Makes the used extent at `page` warm.
    pub(crate) fn free_extent(&self, state: &mut State, arena: usize, page: PageNo) {
        let flags = state.arenas[arena].flags(page);
        if flags & flag::SEALED != 0 {
            return;
        }
        if flags & flag::TAINTED != 0 {
            return self.free_tainted(state, arena, page);
        }
        state.arenas[arena].set_flags(page, flags & (flag::ENTRY | flag::HUGE));
        let pages = state.arenas[arena].free_extent(page, Kind::Warm);
        state.live -= u64::from(pages);
        self.note_gone(state, arena, page, pages);
    }

    /// Gives a unit back, whole: a part would be of no use to the next. One that is mostly empty turns
    /// cold, a partly touched one is warm and remembered as such.
    pub(crate) fn free_unit(&self, state: &mut State, arena: usize, page: PageNo) {
        let flags = state.arenas[arena].flags(page);
        if !is_looked_at(state, flags) {
            return self.free_extent(state, arena, page);
        }
        let start = state.arenas[arena].address(page);
        let bytes = UNIT_PAGES as usize * PAGE;
        let there =
            map::residency(start, UNIT_PAGES as usize).map_or(UNIT_PAGES as usize, |found| found.pages);
        // SAFETY: the unit is being given back, and nobody is given it while the lock is held.
        let is_cold = there * 2 <= UNIT_PAGES as usize && unsafe { map::flush(start, bytes) }.is_ok();
        let kind = if is_cold { Kind::Cold } else { Kind::Warm };
        let hollow = if there < UNIT_PAGES as usize { flag::UNTOUCHED } else { 0 };
        state.arenas[arena].set_flags(page, flags & flag::HUGE | hollow);
        let pages = state.arenas[arena].free_extent(page, kind);
        if is_cold {
            state.resident.shrink(there as u64);
            state.count(Reason::Asked.counter(), (there * PAGE) as u64);
        }
        state.live -= u64::from(pages);
        self.note_gone(state, arena, page, pages);
    }

    /// Maps the used extent at `page` anew and makes it cold. Rare, so the lock is held for the call. Memory
    /// that cannot be mapped anew (no map entry left) is never used again.
    #[cold]
    fn free_tainted(&self, state: &mut State, arena: usize, page: PageNo) {
        let start = state.arenas[arena].address(page);
        let Ok(pages) = state.arenas[arena].used_at(page) else { return };
        // SAFETY: the block is being given back.
        if unsafe { map::renew(start, pages as usize * PAGE) }.is_ok() {
            state.count(Counter::FlushedAsked, u64::from(pages) * PAGE as u64);
            state.resident.shrink(u64::from(pages));
            self.free_cold(state, arena, page);
        }
    }

    /// Makes the used extent at `page`, which has no frames, cold.
    pub(crate) fn free_cold(&self, state: &mut State, arena: usize, page: PageNo) {
        let pages = state.arenas[arena].free_extent(page, Kind::Cold);
        state.live -= u64::from(pages);
        self.note_gone(state, arena, page, pages);
    }

    /// Counts a block given back and drops what was remembered of it.
    pub(crate) fn note_gone(&self, state: &mut State, arena: usize, page: PageNo, pages: u32) {
        state.count(Counter::ExtentsIn, 1);
        state.count(Counter::BytesIn, u64::from(pages) * PAGE as u64);
        if arena == LARGE {
            let start = state.arenas[arena].address(page);
            state.windows.drop_within(Range { start, end: start + pages as usize * PAGE });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Misuse, Request};

    #[test]
    fn a_block_is_free_while_it_is_looked_at() {
        let pages = Pages::new();
        let block = pages.alloc(Request { bytes: 1 << 20, align: PAGE, zero: false }).unwrap();
        let start = block.addr.as_ptr() as usize;
        let mut state = pages.state.lock();
        let arena = state.arena_at(start).unwrap();
        let page = state.arenas[arena].page(start);
        // As when another thread is freeing it.
        state.arenas[arena].set_flags(page, flag::AWAY);
        drop(state);
        // SAFETY: the misuse under test changes nothing.
        assert_eq!(unsafe { pages.free(block.addr) }, Err(Misuse::AlreadyFree));
        assert_eq!(pages.extent_at(block.addr.as_ptr()), Err(Misuse::AlreadyFree));
    }
}
