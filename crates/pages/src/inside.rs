//! Gives back frames inside a unit (64 KiB, cut into small blocks) that is in use, for pages that the unit's
//! owner does not need.
//!
//! The unit stays handed out, and the accounts do not change: the pages come back, as zeros, when they are
//! touched. Its owner can check here whether memory is short ([`Pages::was_short`]); the background thread
//! (`helper`) checks that before it calls the owner's hook. The program's threads also give pages back, on
//! their own paths, so this takes no lock.
//!
//! A part of a huge page that was given back is a **hole**: `khugepaged` may fill it, to make the huge page
//! whole again. If there are many holes, the arena's huge pages are withdrawn, and filled pages are given
//! back again.

use crate::pages::Pages;
use crate::reason::Reason;
use crate::state::{Advice, DENSE, State};
use crate::tag::{Kind, Run};
use crate::units::{HUGE, PAGE};
use core::sync::atomic::Ordering::Relaxed;
use vellum_sys::{Addr, Span, map};

/// The share of an arena's huge pages that may be holes: more are not worth them.
const HOLES_SHARE: usize = 8;
/// Free extents that are passed over, or given back once more, while the lock is held.
const EXTENTS_AT_ONCE: usize = 16;

impl Pages {
    /// Gives back the frames of some pages of the unit that starts at `unit`, a bit each. Returns the bytes
    /// that went, without those locked into memory.
    ///
    /// # Safety
    /// The unit is the caller's, and the contents of these pages are not needed.
    pub unsafe fn flush_inside(&self, unit: Addr, pages: u16, is_asked: bool) -> usize {
        // SAFETY: `# Safety` of this function is that of `flush_inside_again`.
        let gone = unsafe { self.flush_inside_again(unit, pages) };
        let counter = if is_asked { &self.inside.asked } else { &self.inside.decayed };
        counter.fetch_add(gone, Relaxed);
        self.inside.note_holes(unit, gone);
        gone
    }

    /// Gives back pages, uncounted, that had been given back before and that the kernel may have filled.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn flush_inside_again(&self, unit: Addr, pages: u16) -> usize {
        if self.inside.is_still.load(Relaxed) {
            return 0;
        }
        let (mut left, mut gone) = (pages, 0);
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            let run = Span::new(unit + first as usize * PAGE, count as usize * PAGE);
            // SAFETY: pages of the caller's unit, which nobody needs (`# Safety`).
            if unsafe { map::flush(run) }.is_ok() {
                gone += run.bytes;
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

    /// Takes the huge pages of small blocks back where there are enough holes. Returns whether it did: then
    /// the caller gives back again the pages that it gave back inside units.
    pub fn withdraw_huge(&self) -> bool {
        let mut state = self.state.lock();
        self.book_under_lock(&mut state);
        let mapped = state.arenas[DENSE].mapped_span();
        let granted = state.windows.arena_granted();
        self.inside.note_granted(granted);
        let granted = granted.map_or(0, |granted| granted.bytes.min(mapped.bytes));
        let holes = self.inside.holes.load(Relaxed);
        if state.still || holes == 0 || holes < granted / HOLES_SHARE {
            return false;
        }
        self.inside.holes.store(0, Relaxed);
        let Some(withdrawn) = state.windows.withdraw_arena() else { return false };
        drop(state);
        // All of the arena, as one map entry; also where the kernel makes huge pages without a request.
        Advice { unwanted: Some(mapped), ..Advice::NONE }.give();
        self.flush_filled(withdrawn);
        true
    }

    /// Gives back the ends of cold extents of the dense arena that share huge pages with others. Under the
    /// lock, some at a time, as they are anybody's otherwise.
    fn flush_filled(&self, withdrawn: Span) {
        let mut at = withdrawn.start;
        while at < withdrawn.end() {
            let mut state = self.state.lock();
            let arena = &mut state.arenas[DENSE];
            for _ in 0..EXTENTS_AT_ONCE {
                if at >= withdrawn.end().min(arena.mapped_span().end()) {
                    return;
                }
                let Some(Run { start, pages, kind }) = arena.containing(arena.page(at)) else { return };
                let extent = arena.span(start, pages);
                at = extent.end();
                let huge = extent.whole(HUGE);
                let ends = match huge.is_empty() {
                    true => [extent, Span::EMPTY],
                    false => [extent.before(huge.start), extent.from(huge.end())],
                };
                for end in ends.into_iter().filter(|end| kind == Kind::Cold && !end.is_empty()) {
                    // SAFETY: the extent is free, and cold, while the lock is held. Locked memory stays.
                    let _ = unsafe { map::flush(end) };
                }
            }
        }
    }

    /// Notes whether there are pages inside units in use that could go if memory were short.
    pub fn note_sparse(&self, is_sparse: bool) {
        self.shortage.note_sparse(is_sparse);
    }

    /// Returns whether memory was short since the last call.
    pub fn was_short(&self) -> bool {
        self.shortage.was_short()
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
        let (kept, gone): (Vec<_>, Vec<_>) = blocks.iter().enumerate().partition(|(index, _)| index % 4 == 0);
        // SAFETY: blocks of this test alone.
        gone.iter().for_each(|(_, block)| unsafe { pages.free(block.addr).map(drop).unwrap() });
        pages.trim(Severity::Everything);
        // Behind the last survivor are huge pages of which nothing is left: nobody makes these whole.
        let last = kept.last().map_or(Addr::NULL, |(_, block)| block.span().start);
        let dense = granted.map_or(Span::EMPTY, |granted| granted.before(last));
        let gone: Vec<_> = gone.iter().filter(|(_, block)| dense.contains(block.span().start)).collect();
        assert!(gone.len() > 16, "the blocks are in the arena: {}", gone.len());
        // As `khugepaged` does: frames of zeros.
        // SAFETY: free memory of this layer, which nothing else uses; zeros are what it holds.
        gone.iter().for_each(|(_, block)| unsafe { block.addr.write_bytes(0, block.bytes) });
        assert!(pages.withdraw_huge());
        assert!(!pages.withdraw_huge(), "there is nothing to withdraw any more");
        for (_, block) in gone {
            assert_ne!(map::is_resident(block.span().start), Some(true));
        }
        for (_, block) in kept {
            // SAFETY: a block of this test alone, which was never given back.
            unsafe {
                assert_eq!(*block.addr.as_ptr(), 1);
                pages.free(block.addr).unwrap();
            }
        }
        pages.validate().unwrap();
    }
}
