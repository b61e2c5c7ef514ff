//! Returns the frames of this layer's own tables where they describe nothing but free memory.
//!
//! Tags take 16 bytes for each page and side records 128 for each unit: 12 MiB for a burst of 2 GiB. Inside
//! a free extent every tag is empty and no record describes a unit, so zeros may replace them. The kernel's
//! page tables take 8 bytes for each page, and are freed when a range is mapped anew.
//!
//! Frames of tables are returned when frames are flushed, and after many hardly touched blocks were freed.

use crate::arena::Arena;
use crate::pages::Pages;
use crate::release::Victim;
use crate::state::DENSE;
use crate::tag::{Kind, PageNo, TAG_BYTES};
use crate::units::{HUGE, HUGE_PAGES, PAGE, UNIT_PAGES, UNIT_SIDE};
use vellum_sys::{Span, map};

/// The least pages whose tables are worth the calls.
const WORTH_PAGES: u32 = HUGE_PAGES;
const EXTENTS: usize = 16;
const TABLES: usize = 2;

/// Pages freed without frames between two sweeps: 64 MiB, with half a mebibyte of tables.
const SWEEP_PAGES: u32 = (64 << 20) / PAGE as u32;

impl Arena {
    /// The pages of the tables that describe only the inside of the extent of `pages` pages at `page`.
    fn tables_within(&self, page: PageNo, pages: u32) -> [Span; TABLES] {
        let tag = |page: u32| self.place.tags + page as usize * TAG_BYTES;
        let record = |unit: u32| self.place.side + unit as usize * UNIT_SIDE;
        let (first, end) = (page.div_ceil(UNIT_PAGES), (page + pages) / UNIT_PAGES);
        [Span::between(tag(page + 1), tag(page + pages - 1)), Span::between(record(first), record(end))]
            .map(|table| table.whole(PAGE))
    }

    /// Gives back the frames of the tables within the free extent of `pages` pages at `page`.
    fn flush_tables(&self, page: PageNo, pages: u32) {
        for table in self.tables_within(page, pages).into_iter().filter_map(Span::non_empty) {
            // SAFETY: the tags inside an extent say nothing, as zeros do, and are read under the lock alone.
            // The records are of units of which no part is handed out: who reads one finds that there is
            // no slab and no block, before as after. Locked memory stays as it is.
            let _ = unsafe { map::flush(table) };
        }
    }

    /// Maps the whole huge pages of a cold extent anew, which frees the kernel's tables.
    fn renew_inside(&self, page: PageNo, pages: u32) {
        let huge = self.span(page, pages).whole(HUGE);
        // SAFETY: nobody has the extent, and it has no contents.
        if !huge.is_empty() && unsafe { map::renew(huge) }.is_ok() {
            self.dump_no_more_than_before(huge);
        }
    }
}

impl Pages {
    /// Gives back the frames of tables beside those of `victims` that have become cold. The victims are still
    /// out of their lists, so the tables inside are not needed.
    pub(crate) fn flush_tables(&self, victims: &[Victim]) {
        let is_worth = |victim: &&Victim| victim.kind == Kind::Cold && victim.pages() >= WORTH_PAGES;
        if !victims.iter().any(|victim| is_worth(&victim)) {
            return;
        }
        let state = self.state.lock();
        if state.still {
            return;
        }
        for victim in victims.iter().filter(is_worth) {
            state.arenas[victim.arena].flush_tables(victim.page, victim.pages());
        }
    }

    /// `pages` pages were freed without frames. When that has come to much, gives back the tables of the
    /// longest cold extents. Rare, so the lock is held.
    pub(crate) fn sweep_tables(&self, pages: u32) {
        let mut state = self.state.lock();
        state.unswept = state.unswept.saturating_add(pages);
        if state.unswept < SWEEP_PAGES || state.still {
            return;
        }
        state.unswept = 0;
        for (index, arena) in state.arenas.iter_mut().enumerate() {
            for extent in arena.longest_cold::<EXTENTS>(WORTH_PAGES).into_iter().flatten() {
                arena.flush_tables(extent.start, extent.pages);
                // Locked memory stays. Huge pages in the dense arena are asked for once.
                if index != DENSE && !arena.is_short() {
                    arena.renew_inside(extent.start, extent.pages);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{FINE, LARGE};
    use crate::{Config, Request, Severity};
    use std::boxed::Box;
    use std::vec::Vec;

    #[test]
    fn tables_of_memory_that_is_given_back_go_with_it() {
        let pages: &Pages = Box::leak(Box::new(Pages::new()));
        pages.configure(Config { huge: crate::HugePolicy::Never, ..Config::DEFAULT });
        let request = Request { bytes: 4 << 20, align: PAGE, zero: false };
        let blocks: Vec<_> = (0..64).map(|_| pages.alloc(request).unwrap()).collect();
        let place = pages.state.lock().arenas[LARGE].place;
        for block in &blocks {
            let page = pages.state.lock().arenas[LARGE].page(block.span().start);
            // Tags of an earlier life, and a record that was written and cleared.
            pages.state.lock().arenas[LARGE].touch_tables(page, (block.bytes / PAGE) as u32);
            // SAFETY: a block of this test alone.
            unsafe { block.addr.write_bytes(1, block.bytes) };
        }
        let resident = || {
            let count = |start, bytes: usize| {
                let pages = Span::new(start, bytes).whole(PAGE).pages();
                pages.filter(|&page| map::is_resident(page) == Some(true)).count()
            };
            let all = 64 * (4 << 20) / PAGE;
            count(place.tags, all * TAG_BYTES) + count(place.side, all / UNIT_PAGES as usize * UNIT_SIDE)
        };
        let before = resident();
        for block in blocks.iter().skip(1).step_by(2) {
            // SAFETY: a block of this test alone.
            unsafe { pages.free(block.addr).unwrap() };
        }
        pages.trim(Severity::Everything);
        assert!(resident() * 10 < before * 7, "{} of {before}", resident());
        pages.validate().unwrap();
        for block in blocks.iter().step_by(2) {
            // SAFETY: a block of this test alone.
            unsafe { pages.free(block.addr).unwrap() };
        }
        pages.validate().unwrap();
        let again: Vec<_> = (0..64).map(|_| pages.alloc(request).unwrap()).collect();
        pages.validate().unwrap();
        // SAFETY: a block of this test alone.
        again.iter().for_each(|block| unsafe { pages.free(block.addr).map(drop).unwrap() });
    }

    #[test]
    fn tables_of_blocks_that_were_hardly_touched_go_with_them() {
        let pages: &Pages = Box::leak(Box::new(Pages::new()));
        pages.configure(Config { huge: crate::HugePolicy::Never, ..Config::DEFAULT });
        let request = Request { bytes: 600 << 10, align: PAGE, zero: false };
        for round in 0..2 {
            let blocks: Vec<_> = (0..1000).map(|_| pages.alloc(request).unwrap()).collect();
            let tags = pages.state.lock().arenas[FINE].place.tags;
            // SAFETY: blocks of this test alone.
            blocks.iter().for_each(|block| unsafe { block.addr.write(1) });
            let there = |at: usize| map::is_resident(tags + at * PAGE) == Some(true);
            let most = (0..600).filter(|&at| there(at)).count();
            // SAFETY: a block of this test alone.
            blocks.iter().for_each(|block| unsafe { pages.free(block.addr).map(drop).unwrap() });
            let left = (0..600).filter(|&at| there(at)).count();
            assert!(left < 150 && most > 300, "round {round}: {left} left of {most}");
            pages.validate().unwrap();
        }
    }
}
