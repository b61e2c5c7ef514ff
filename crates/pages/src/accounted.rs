//! An arena where address space is accounted (`RLIMIT_AS`, strict overcommit, `mlockall`): it maps no
//! more than it needs, and unmaps its end when that is cold.

use crate::arena::{Arena, STEP_SHORT};
use crate::tag::{Kind, PageNo};
use crate::units::{ARENA_BYTES, PAGE, UNIT, UNIT_SIDE};
use vellum_sys::map;

impl Arena {
    /// Treats address space as accounted from now on, and gives a cold end back.
    pub(crate) fn on_mlockall(&mut self) {
        if self.place.short {
            self.retreat();
            return;
        }
        self.place.short = true;
        self.retreat();
        // All that is mapped becomes resident: tables of what is not mapped go, and with them the side
        // table's readable rest, which counts as address space as well.
        let per_page = UNIT_SIDE * PAGE / UNIT;
        self.tags.count = self.mapped;
        let (mapped, limit, all) = (self.mapped as usize, self.place.limit as usize, ARENA_BYTES / PAGE);
        // SAFETY: nobody has written there, or what was written says nothing; it is mapped again before it is
        // used. Behind the limit it is the annex's.
        let _ = unsafe { map::release(self.place.side + mapped * per_page, (limit - mapped) * per_page) };
        if self.place.reserved {
            self.place.reserved = false;
            // SAFETY: pages and tags from `mapped` on are reserved, and none was taken into use.
            unsafe {
                let _ = map::release(self.address(self.mapped), (limit - mapped) * PAGE);
                let _ = map::release(self.place.tags + mapped * 16, (all - mapped) * 16);
            }
        }
    }

    /// Where address space is accounted, unmaps a cold end. Returns the bytes given back.
    pub(crate) fn retreat(&mut self) -> usize {
        if !self.place.short || self.mapped <= STEP_SHORT {
            return 0;
        }
        let (start, pages, kind) = self.tags.ending_at(self.mapped - 1);
        let keep = start.next_multiple_of(STEP_SHORT).max(STEP_SHORT);
        if kind != Kind::Cold || keep >= self.mapped {
            return 0;
        }
        let len = (self.mapped - keep) as usize * PAGE;
        // SAFETY: the pages from `keep` are free and cold.
        if unsafe { map::release(self.address(keep), len) }.is_err() {
            return 0;
        }
        self.remove_free(start, pages, kind);
        self.mapped = keep;
        self.dumped = if self.dumped == PageNo::MAX { self.dumped } else { self.dumped.min(keep) };
        if keep > start {
            self.insert_free(start, keep - start, Kind::Cold, 0);
        }
        len
    }
}
