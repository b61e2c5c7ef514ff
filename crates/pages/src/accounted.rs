//! Grows and shrinks arenas while address space counts against a limit (`RLIMIT_AS`, strict overcommit,
//! `mlockall`). Only needed memory is mapped, and an arena's cold end (free, without frames) is unmapped.

use crate::arena::{Arena, STEP_SHORT};
use crate::tag::{Kind, PageNo, Run, TAG_BYTES};
use crate::units::{ARENA_BYTES, PAGE, bytes_of};
use vellum_sys::{Span, map};

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
        self.tags.count = self.mapped;
        let unused = self.place.limit - self.mapped;
        // SAFETY: records of units that are not handed out say nothing, and are mapped again before they are
        // used. Behind the limit they are the annex's.
        let _ = unsafe { map::release(self.side_span(self.mapped, unused)) };
        if self.place.reserved {
            self.place.reserved = false;
            let tags = Span::new(self.place.tags, ARENA_BYTES / PAGE * TAG_BYTES);
            // SAFETY: pages and tags from `mapped` on are reserved, and none was taken into use.
            unsafe {
                let _ = map::release(self.span(self.mapped, unused));
                let _ = map::release(tags.from(self.place.tags + self.mapped as usize * TAG_BYTES));
            }
        }
    }

    /// Unmaps a cold end where address space is accounted. Returns the bytes given back.
    pub(crate) fn retreat(&mut self) -> usize {
        if !self.place.short || self.mapped <= STEP_SHORT {
            return 0;
        }
        let Run { start, pages, kind } = self.tags.ending_at(self.mapped - 1);
        let keep = start.next_multiple_of(STEP_SHORT).max(STEP_SHORT);
        if kind != Kind::Cold || keep >= self.mapped {
            return 0;
        }
        let end = self.mapped - keep;
        // SAFETY: the pages from `keep` on are free and cold.
        if unsafe { map::release(self.span(keep, end)) }.is_err() {
            return 0;
        }
        self.remove_free(start, pages, kind);
        self.mapped = keep;
        self.dumped = if self.dumped == PageNo::MAX { self.dumped } else { self.dumped.min(keep) };
        if keep > start {
            self.insert_free(start, keep - start, Kind::Cold, 0);
        }
        bytes_of(end)
    }
}
