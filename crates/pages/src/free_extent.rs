//! Frees a block: chooses the state of its pages, and drops the records that belong to it.
//!
//! Resident pages turn warm (cached), others cold. A block whose mapping the program changed is mapped anew.

use crate::pages::Pages;
use crate::reason::Reason;
use crate::state::{LARGE, State};
use crate::survey::{Part, Survey};
use crate::tag::{Kind, PageNo, flag};
use crate::units::{PAGE, UNIT_PAGES, bytes_of};
use vellum_sys::lock::Held;
use vellum_sys::{Addr, Span, map};
use vellum_wire::Counter;

/// True if a freed extent must be surveyed: its resident pages are not known, and frames may go.
fn must_be_surveyed(state: &State, flags: u8) -> bool {
    let unknown = flag::UNTOUCHED;
    flags & (unknown | flag::TAINTED | flag::ENTRY | flag::SEALED) == unknown
        && !state.still
        && state.decays()
}

impl Pages {
    /// Gives the used extent at `page` back, and does what follows.
    pub(crate) fn give_back(&self, mut state: Held<'_, State>, arena: usize, page: PageNo) {
        let flags = state.arenas[arena].flags(page);
        let Ok(pages) = state.arenas[arena].used_at(page) else { return };
        state.before_free();
        if !must_be_surveyed(&state, flags) {
            self.free_extent(&mut state, arena, page);
            return self.after_free(state, pages);
        }
        // Nobody's, while it is looked at without the lock.
        state.arenas[arena].set_flags(page, flag::AWAY);
        self.note_gone(&mut state, arena, page, pages);
        state.live -= u64::from(pages);
        state.away += 1;
        let block = state.arenas[arena].span(page, pages);
        if block.contains(state.probe) {
            state.probe = Addr::NULL;
        }
        drop(state);
        let its = flags & flag::HUGE;
        let (mut is_sparse, mut is_full) = (true, false);
        match Survey::of(block) {
            Survey::Whole => {
                (is_sparse, is_full) = (false, true);
                self.put_part(arena, block, Kind::Warm, its);
            }
            Survey::Empty(lost) => self.drop_part(arena, block, lost, its),
            Survey::Parts(parts) => {
                let mut rest = block;
                is_full = true;
                while !rest.is_empty() {
                    let Part { kept, lost } = parts.next(rest);
                    if kept.start > rest.start {
                        is_full = false;
                        self.drop_part(arena, rest.before(kept.start), lost, its);
                    }
                    if !kept.is_empty() {
                        is_sparse = false;
                        self.put_part(arena, kept, Kind::Warm, its);
                    }
                    rest = rest.from(kept.end());
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
    fn drop_part(&self, arena: usize, part: Span, lost: usize, flags: u8) {
        let kind = self.let_go(part, flags, false);
        self.put_part(arena, part, kind, flags);
        self.sweep_tables(part.page_count().get() as u32);
        let mut state = self.state.lock();
        if kind == Kind::Cold {
            state.resident.shrink(lost as u64);
            state.count(Reason::Asked.counter(), (lost * PAGE) as u64);
        }
    }

    /// Makes the first part of an extent that is nobody's free, as `kind`.
    fn put_part(&self, arena: usize, part: Span, kind: Kind, flags: u8) {
        let mut state = self.state.lock();
        let arena = &mut state.arenas[arena];
        let (page, pages) = (arena.page(part.start), part.page_count().get() as u32);
        if arena.used_at(page).is_ok_and(|all| all > pages) {
            arena.split(page, pages);
        }
        arena.set_flags(page, flags);
        arena.free_extent(page, kind);
    }

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

    /// Gives a unit back, whole: a part would be of no use to the next. A unit that is mostly empty turns
    /// cold; a partly touched one turns warm and is flagged as such.
    pub(crate) fn free_unit(&self, state: &mut State, arena: usize, page: PageNo) {
        let flags = state.arenas[arena].flags(page);
        if !must_be_surveyed(state, flags) {
            return self.free_extent(state, arena, page);
        }
        let (unit, all) = (state.arenas[arena].span(page, UNIT_PAGES), UNIT_PAGES as usize);
        let there = map::residency(unit).map_or(all, |found| found.pages);
        // SAFETY: the unit is being given back, and nobody is given it while the lock is held.
        let is_cold = there * 2 <= all && unsafe { map::flush(unit) }.is_ok();
        let kind = if is_cold { Kind::Cold } else { Kind::Warm };
        let hollow = if there < all { flag::UNTOUCHED } else { 0 };
        state.arenas[arena].set_flags(page, flags & flag::HUGE | hollow);
        let pages = state.arenas[arena].free_extent(page, kind);
        if is_cold {
            state.resident.shrink(there as u64);
            state.count(Reason::Asked.counter(), (there * PAGE) as u64);
        }
        state.live -= u64::from(pages);
        self.note_gone(state, arena, page, pages);
    }

    /// Maps the used extent at `page` anew, which makes it cold. Rare, so the lock is held for the call.
    /// Memory that cannot be mapped anew (no map entry left) stays unused for good.
    #[cold]
    fn free_tainted(&self, state: &mut State, arena: usize, page: PageNo) {
        let Ok(pages) = state.arenas[arena].used_at(page) else { return };
        // SAFETY: the block is being given back.
        if unsafe { map::renew(state.arenas[arena].span(page, pages)) }.is_ok() {
            state.count(Counter::FlushedAsked, bytes_of(pages) as u64);
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

    /// Counts a block given back and drops its window.
    pub(crate) fn note_gone(&self, state: &mut State, arena: usize, page: PageNo, pages: u32) {
        state.count(Counter::ExtentsIn, 1);
        state.count(Counter::BytesIn, bytes_of(pages) as u64);
        if arena == LARGE {
            let gone = state.arenas[arena].span(page, pages);
            state.windows.drop_within(gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Misuse, Request};

    #[test]
    fn a_block_is_free_while_it_must_be_surveyed() {
        let pages = Pages::new();
        let block = pages.alloc(Request { bytes: 1 << 20, align: PAGE, zero: false }).unwrap();
        let start = block.span().start;
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
