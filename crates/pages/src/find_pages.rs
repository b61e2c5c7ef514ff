//! Finds the pages for a new block, and decides which frames the block gets.
//!
//! If earlier blocks of the same length were hardly touched, a block gets cold memory (address space without
//! frames). Any other block gets the first of these that exists:
//!
//! 1. the smallest sufficient extent with frames, in the block's own arena;
//! 2. an extent with frames in another arena, if the peak would rise otherwise or address space counts
//!    against a limit;
//! 3. cold address space, into which cached frames are moved;
//! 4. anything that fits, if address space is short.

use crate::arena::Taken;
use crate::pages::Pages;
use crate::reason::is_worth_checking;
use crate::state::{ARENAS, Advice, DENSE, FINE, LARGE, State, Use};
use crate::tag::Kind;
use crate::units::{HUGE, PAGE, UNIT_PAGES, bytes_of};
use vellum_sys::lock::Held;
use vellum_sys::{Span, clock, limits, map};
use vellum_wire::Counter;

impl Pages {
    /// Finds `pages` aligned pages, by preference with frames, without raising the peak. Books them.
    pub(crate) fn find_pages(&self, pages: u32, align: u32, usage: Use) -> Option<(usize, Taken)> {
        let mut state = self.state.lock();
        // A block that moves asks for what it grows by (`shift`).
        let is_new = matches!(usage, Use::Fixed | Use::Sparse);
        if !self.init(&mut state) || is_new && limits::is_refused_at_once(bytes_of(pages)) {
            return None;
        }
        let is_sparse = usage == Use::Fixed && state.sparse.has(pages);
        let usage = if is_sparse { Use::Sparse } else { usage };
        let home = state.arena_for(pages, usage);
        if !matches!(usage, Use::Empty | Use::Sparse) {
            let found =
                if usage == Use::Growing { state.arenas[home].take_roomiest(pages, align) } else { None };
            if let Some(taken) = found.or_else(|| state.arenas[home].take_reused(pages, align)) {
                return Some(self.book(state, home, taken, usage));
            }
            // Small blocks are at home in two arenas. A block of a unit or more goes anywhere if the peak
            // would rise otherwise, and any block where mapped memory counts.
            let over =
                state.arenas[home].is_short() || pages >= UNIT_PAGES && state.excess(u64::from(pages), 0) > 0;
            for other in (0..ARENAS).filter(|&other| other != home) {
                if (over || home != LARGE && other != LARGE)
                    && let Some(taken) = state.arenas[other].take_reused(pages, align)
                {
                    return Some(self.book(state, other, taken, usage));
                }
            }
        }
        state.check_new_limits(pages);
        let cold_align = state.cold_align(home, align);
        let room = state.room(home, pages);
        if let Some(taken) = state.arenas[home].take_cold(pages, cold_align, room) {
            return Some(self.book(state, home, taken, usage));
        }
        drop(state);
        if let Some(found) = self.find_pages_anywhere(pages, align, usage) {
            return Some(found);
        }
        // Cached extents, and those that another thread has in hand, may keep address space in use.
        self.await_returns();
        self.trim(crate::Severity::Everything);
        self.find_pages_anywhere(pages, align, usage)
    }

    /// Finds pages where address space is short: any that fit, in any arena, after giving back cold ends.
    fn find_pages_anywhere(&self, pages: u32, align: u32, usage: Use) -> Option<(usize, Taken)> {
        let mut state = self.state.lock();
        for arena in &mut state.arenas {
            arena.retreat();
        }
        for arena in 0..ARENAS {
            let found = state.arenas[arena].take_cold(pages, align, 0);
            let found = found.or_else(|| match usage {
                Use::Empty => None,
                _ => state.arenas[arena].take_reused(pages, align),
            });
            if let Some(taken) = found {
                return Some(self.book(state, arena, taken, usage));
            }
        }
        None
    }

    /// Up to `wanted` units with frames, from wherever small blocks live.
    pub(crate) fn find_reused_units(&self, wanted: u32) -> Option<(usize, Taken)> {
        let mut state = self.state.lock();
        if !state.is_init {
            return None;
        }
        let home = state.arena_for(UNIT_PAGES, Use::Fixed);
        for arena in [home, FINE + DENSE - home] {
            if let Some(taken) = state.arenas[arena].take_reused_row(UNIT_PAGES, wanted) {
                return Some(self.book(state, arena, taken, Use::Fixed));
            }
        }
        None
    }

    /// Books a block just taken, and fills its cold part from the cache.
    fn book(&self, mut state: Held<'_, State>, arena: usize, mut taken: Taken, usage: Use) -> (usize, Taken) {
        state.book_taken(&taken);
        state.count(Counter::ExtentsOut, 1);
        state.count(Counter::BytesOut, u64::from(taken.pages) * PAGE as u64);
        if taken.cold() == 0 {
            if taken.flags != 0 {
                state.arenas[arena].set_flags(taken.start, State::flags_for(&taken, &Advice::NONE));
            }
            state.publish();
            return (arena, taken);
        }
        drop(state);
        // Frames that move in with the block are no new ones.
        if usage == Use::Empty {
            self.state.lock().publish();
            return (arena, taken);
        }
        if usage != Use::Sparse {
            self.fill_from_cache(arena, &mut taken);
        }
        self.limit_to_peak(&taken);
        let mut state = self.state.lock();
        let advice = state.plan_huge(arena, &taken, usage);
        let flags = State::flags_for(&taken, &advice);
        state.arenas[arena].set_flags(taken.start, flags);
        let block = state.arenas[arena].span_of(&taken);
        self.after_cold(state, &advice, block);
        (arena, taken)
    }

    /// Does what follows when a block with cold memory was handed out: advises the kernel, enforces the
    /// limits, scans the windows, starts the helper.
    pub(crate) fn after_cold(&self, state: Held<'_, State>, advice: &Advice, block: Span) {
        state.publish();
        let cached = state.free_pages(Kind::Warm);
        let is_due = self.is_global() && cached > state.harmless && is_worth_checking(cached);
        drop(state);
        self.apply_advice(advice);
        if is_due {
            self.enforce_limits();
        }
        if advice.watch {
            self.scan_near(block);
            self.request_scan(advice.wanted.is_some());
        }
    }

    /// Gives the advice to the kernel, and tries the first huge page where that is due. A dear page stays,
    /// because its price is paid; the others granted with it are taken back.
    pub(crate) fn apply_advice(&self, advice: &Advice) {
        advice.give();
        let Some(granted) = advice.wanted.filter(|_| advice.is_trial) else { return };
        let before = clock::thread_cpu_ns();
        // A page that is there already, or is no huge page, costs next to nothing and shows nothing. If
        // memory is not to be had, it is the program's touch that has to learn it.
        let _ = map::populate(Span::new(granted.start, PAGE));
        let ns = clock::thread_cpu_ns() - before;
        if self.state.lock().windows.paid(ns) {
            let rest = granted.from((granted.start + 1).round_up(HUGE));
            Advice { unwanted: rest.non_empty(), ..Advice::NONE }.give();
        }
    }
}
