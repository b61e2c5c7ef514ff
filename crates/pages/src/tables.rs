//! The tables beside memory that goes back: where they say nothing, their frames go, too.
//!
//! Tags are 16 bytes a page and side records 128 a unit, 12 MiB for a burst of 2 GiB. Inside a free extent
//! every tag is empty, and every record is of a unit that is none: zeros say the same of both.

use crate::arena::Arena;
use crate::huge_window::Range;
use crate::pages::Pages;
use crate::release::{VICTIMS, Victim};
use crate::tag::{Kind, PageNo, TAG_BYTES};
use crate::units::{HUGE_PAGES, PAGE, UNIT_PAGES, UNIT_SIDE, round_down, round_up};
use vellum_sys::map;

/// The least pages whose tables are worth the calls.
const WORTH_PAGES: u32 = HUGE_PAGES;
/// The tables: tags and side records.
const TABLES: usize = 2;

/// The whole pages between two addresses.
fn whole_pages(start: usize, end: usize) -> Range {
    let start = round_up(start, PAGE);
    Range { start, end: round_down(end, PAGE).max(start) }
}

impl Arena {
    /// The pages of the tables that say nothing but of the inside of the extent of `pages` pages at `page`.
    fn tables_within(&self, page: PageNo, pages: u32) -> [Range; TABLES] {
        let (tags, side) = self.tables();
        let tag = |page: u32| tags + page as usize * TAG_BYTES;
        let record = |unit: u32| side + unit as usize * UNIT_SIDE;
        let (first, end) = (page.div_ceil(UNIT_PAGES), (page + pages) / UNIT_PAGES);
        [
            whole_pages(tag(page + 1), tag(page + pages - 1)),
            whole_pages(record(first), record(end.max(first))),
        ]
    }
}

impl Pages {
    /// Gives back the frames of tables beside those of `victims` that have become cold. They are out of
    /// their lists still, so nobody needs what is inside.
    pub(crate) fn flush_tables(&self, victims: &[Victim]) {
        let is_worth = |victim: &&Victim| victim.kind == Kind::Cold && victim.pages >= WORTH_PAGES;
        if !victims.iter().any(|victim| is_worth(&victim)) {
            return;
        }
        let mut ranges = [[Range { start: 0, end: 0 }; TABLES]; VICTIMS];
        {
            let state = self.state.lock();
            if state.still {
                return;
            }
            for (ranges, victim) in ranges.iter_mut().zip(victims).filter(|(_, victim)| is_worth(victim)) {
                *ranges = state.arenas[victim.arena].tables_within(victim.page, victim.pages);
            }
        }
        for range in ranges.iter().flatten().filter(|range| range.len() > 0) {
            // SAFETY: the tags inside an extent say nothing, as zeros do, and are read under the lock alone.
            // The records are of units of which no part is handed out: who reads one finds that there is
            // no slab and no block, before as after. Locked memory stays as it is.
            let _ = unsafe { map::flush(range.start, range.len()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::LARGE;
    use crate::{Config, Request, Severity};
    use std::boxed::Box;
    use std::vec::Vec;

    #[test]
    fn tables_of_memory_that_is_given_back_go_with_it() {
        let pages: &Pages = Box::leak(Box::new(Pages::new()));
        pages.configure(Config { huge: crate::HugePolicy::Never, ..Config::DEFAULT });
        let request = Request { bytes: 4 << 20, align: PAGE, zero: false };
        let blocks: Vec<_> = (0..64).map(|_| pages.alloc(request).unwrap()).collect();
        let (tags, side) = pages.state.lock().arenas[LARGE].tables();
        for block in &blocks {
            let page = pages.state.lock().arenas[LARGE].page(block.addr.as_ptr() as usize);
            // Tags of an earlier life, and a record that was written and cleared.
            pages.state.lock().arenas[LARGE].touch_tables(page, (block.bytes / PAGE) as u32);
            // SAFETY: a block of this test alone.
            unsafe { block.addr.write_bytes(1, block.bytes) };
        }
        let resident = || {
            let count = |start, bytes: usize| {
                (0..bytes / PAGE).filter(|page| map::is_resident(start + page * PAGE) == Some(true)).count()
            };
            let all = 64 * (4 << 20) / PAGE;
            count(tags, all * TAG_BYTES) + count(side, all / UNIT_PAGES as usize * UNIT_SIDE)
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
            // SAFETY: as above.
            unsafe { pages.free(block.addr).unwrap() };
        }
        pages.validate().unwrap();
        let again: Vec<_> = (0..64).map(|_| pages.alloc(request).unwrap()).collect();
        pages.validate().unwrap();
        // SAFETY: as above.
        again.iter().for_each(|block| unsafe { pages.free(block.addr).map(drop).unwrap() });
    }
}
