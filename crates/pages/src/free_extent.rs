//! Freeing a block: the kind of its pages, and what is dropped with it.
//!
//! Its pages turn warm, unless they hold no frames (cold), or the program changed their mapping (mapped anew,
//! then cold).

use crate::huge_window::Range;
use crate::pages::Pages;
use crate::state::{LARGE, State};
use crate::tag::{Kind, PageNo, flag};
use crate::units::PAGE;
use vellum_sys::map;
use vellum_wire::Counter;

impl Pages {
    /// Makes the used extent at `page` warm.
    pub(crate) fn free_extent(&self, state: &mut State, arena: usize, page: PageNo) {
        let flags = state.arenas[arena].flags(page);
        if flags & flag::TAINTED != 0 {
            return self.free_tainted(state, arena, page);
        }
        state.arenas[arena].set_flags(page, flags & (flag::ENTRY | flag::HUGE));
        let pages = state.arenas[arena].free_extent(page, Kind::Warm);
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
