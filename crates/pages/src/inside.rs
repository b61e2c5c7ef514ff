//! Pages inside a unit in use, whose owner knows that nobody needs them.
//!
//! The unit stays handed out, and is booked as before: the pages come back, as zeros, when they are touched.
//! Its owner learns here when memory is short ([`Pages::was_short`]), which the helper finds out before it
//! calls the hook. Threads give pages back here on their own paths, so it takes no lock.
//!
//! A part of a huge page that has gone is a **hole**: `khugepaged` may fill it, to make the
//! huge page whole again. Where there are many, the arena's huge pages are withdrawn, and what was filled by
//! then is given back once more.

use crate::huge_window::Range;
use crate::pages::Pages;
use crate::release::Reason;
use crate::shortage;
use crate::state::{Advice, DENSE, State};
use crate::tag::Kind;
use crate::units::{HUGE, PAGE, round_down, round_up};
use core::sync::atomic::Ordering::Relaxed;
use vellum_sys::map;

/// The share of an arena's huge pages that may be holes: more are not worth them.
const HOLES_SHARE: usize = 8;
/// Free extents that are passed over, or given back once more, while the lock is held.
const EXTENTS_AT_ONCE: usize = 16;

impl Pages {
    /// Gives back the frames of some pages of the unit that starts at `unit`, a bit each. The bytes that
    /// went: none of those that are locked into memory.
    ///
    /// # Safety
    /// The unit is the caller's, and nobody needs what is on these pages.
    pub unsafe fn flush_inside(&self, unit: usize, pages: u16, is_asked: bool) -> usize {
        // SAFETY: passed on.
        let gone = unsafe { self.flush_inside_again(unit, pages) };
        let counter = if is_asked { &self.inside.asked } else { &self.inside.decayed };
        counter.fetch_add(gone, Relaxed);
        self.inside.note_holes(unit, gone);
        gone
    }

    /// The same, of pages that have been given back before and may have come again by the kernel's doing:
    /// they are not counted once more.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn flush_inside_again(&self, unit: usize, pages: u16) -> usize {
        if self.inside.is_still.load(Relaxed) {
            return 0;
        }
        let (mut left, mut gone) = (pages, 0);
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            // SAFETY: by this function's condition.
            if unsafe { map::flush(unit + first as usize * PAGE, count as usize * PAGE) }.is_ok() {
                gone += count as usize * PAGE;
            }
            left &= !(((1u32 << count) - 1) << first) as u16;
        }
        gone
    }

    /// Adds what went inside units to the process's counters.
    pub fn book_inside(&self) {
        self.book_under_lock(&mut self.state.lock());
    }

    fn book_under_lock(&self, state: &mut State) {
        let inside = &self.inside;
        for (counter, reason) in [(&inside.decayed, Reason::Decay), (&inside.asked, Reason::Asked)] {
            let bytes = counter.swap(0, Relaxed);
            state.resident.shrink((bytes / PAGE) as u64);
            state.count(reason.counter(), bytes as u64);
        }
    }

    /// Takes the huge pages of small blocks back where there are enough holes. Whether it did: then the
    /// caller gives what it has given back inside units back again.
    pub fn withdraw_huge(&self) -> bool {
        let mut state = self.state.lock();
        self.book_under_lock(&mut state);
        let mapped = state.arenas[DENSE].mapped_bytes();
        let granted = state.windows.arena_granted();
        self.inside.note_granted(granted);
        let granted = granted.map_or(0, |granted| granted.len().min(mapped));
        let holes = self.inside.holes.load(Relaxed);
        if state.still || holes == 0 || holes < granted / HOLES_SHARE {
            return false;
        }
        self.inside.holes.store(0, Relaxed);
        let Some(withdrawn) = state.windows.withdraw_arena() else { return false };
        let start = state.arenas[DENSE].whole().start;
        drop(state);
        // All of the arena, as one map entry; and where the kernel makes huge pages unasked, it is to make
        // none there either.
        Advice { unwanted: Some(Range { start, end: start + mapped }), ..Advice::NONE }.give();
        self.flush_filled(withdrawn);
        true
    }

    /// Gives back the ends of cold extents of the dense arena that share huge pages with others. Under the
    /// lock, some at a time, as they are anybody's otherwise.
    fn flush_filled(&self, range: Range) {
        let mut at = range.start;
        while at < range.end {
            let mut state = self.state.lock();
            let arena = &mut state.arenas[DENSE];
            for _ in 0..EXTENTS_AT_ONCE {
                if at >= range.end.min(arena.whole().start + arena.mapped_bytes()) {
                    return;
                }
                let Some((head, pages, kind)) = arena.containing(arena.page(at)) else { return };
                let (start, end) = (arena.address(head), arena.address(head + pages));
                at = end;
                let (first, last) = (round_up(start, HUGE), round_down(end, HUGE));
                let ends =
                    if first < last { [(start, first), (last, end)] } else { [(start, end), (end, end)] };
                for (from, to) in ends.into_iter().filter(|(from, to)| kind == Kind::Cold && from < to) {
                    // SAFETY: the extent is free, and cold, while the lock is held. Locked memory stays.
                    let _ = unsafe { map::flush(from, to - from) };
                }
            }
        }
    }

    /// Says whether there are pages inside units in use that could go if memory were short.
    pub fn note_sparse(&self, is_sparse: bool) {
        shortage::note_sparse(is_sparse);
    }

    /// Whether memory was short since the last call.
    pub fn was_short(&self) -> bool {
        shortage::was_short()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::DENSE_MIN;
    use crate::{Request, Severity};
    use std::boxed::Box;
    use std::vec::Vec;

    #[test]
    fn what_the_kernel_fills_before_huge_pages_are_withdrawn_goes_back_again() {
        let pages: &Pages = Box::leak(Box::new(Pages::new()));
        let block = || pages.alloc(Request { bytes: 256 << 10, align: PAGE, zero: false }).unwrap();
        let blocks: Vec<_> = (0..8 * DENSE_MIN / (256 << 10))
            .map(|_| {
                let block = block();
                // SAFETY: a block of this test alone.
                unsafe { block.addr.write_bytes(1, block.bytes) };
                block
            })
            .collect();
        let granted = {
            let mut state = pages.state.lock();
            let start = state.arenas[DENSE].whole().start;
            state.windows.grant_arena_for_test(start + DENSE_MIN);
            state.windows.arena_granted()
        };
        pages.inside.note_granted(granted);
        let is_dense =
            |address: usize| granted.is_some_and(|range| (range.start..range.end).contains(&address));
        let (kept, gone): (Vec<_>, Vec<_>) = blocks.iter().enumerate().partition(|(index, _)| index % 4 == 0);
        // SAFETY: blocks of this test alone.
        gone.iter().for_each(|(_, block)| unsafe { pages.free(block.addr).map(drop).unwrap() });
        pages.trim(Severity::Everything);
        // Behind the last survivor are huge pages of which nothing is left: nobody makes these whole.
        let last = kept.last().map_or(0, |(_, block)| block.addr.as_ptr() as usize);
        let is_between = |address: usize| address < last && is_dense(address);
        let gone: Vec<_> =
            gone.iter().filter(|(_, block)| is_between(block.addr.as_ptr() as usize)).collect();
        assert!(gone.len() > 16, "the blocks are in the arena: {}", gone.len());
        // As `khugepaged` does: frames of zeros.
        // SAFETY: free memory of this layer, which nothing else uses; zeros are what it holds.
        gone.iter().for_each(|(_, block)| unsafe { block.addr.write_bytes(0, block.bytes) });
        assert!(pages.withdraw_huge());
        assert!(!pages.withdraw_huge(), "there is nothing to withdraw any more");
        for (_, block) in gone {
            assert_ne!(map::is_resident(block.addr.as_ptr() as usize), Some(true));
        }
        for (_, block) in kept {
            // SAFETY: as above.
            unsafe {
                assert_eq!(*block.addr.as_ptr(), 1);
                pages.free(block.addr).unwrap();
            }
        }
        pages.validate().unwrap();
    }
}
