//! The part of an arena that a core dump includes. Without a bound, each dump would contain the gibibyte that
//! an arena maps ahead.
//!
//! A dump includes an arena's pages from the start to a boundary behind the last page that was handed out.
//! The boundary moves ahead in large steps, and falls back when the arena's end turns cold.

use crate::arena::Arena;
use crate::tag::PageNo;
use crate::units::{HUGE_PAGES, PAGE};
use vellum_sys::{Span, map};

/// The mark moves ahead by this share of the pages before it, or by these pages; huge pages stay whole.
const DUMP_SHARE: u32 = 16;
const DUMP_MIN: u32 = (64 << 10) / PAGE as u32;

impl Arena {
    /// Has core dumps include the pages before `end`, and some more, so that not every call comes here.
    pub(crate) fn dump_to(&mut self, end: PageNo) {
        let to = if self.place.huge {
            end.next_multiple_of(HUGE_PAGES)
        } else {
            end + (end / DUMP_SHARE).max(DUMP_MIN)
        };
        let to = to.min(self.mapped_pages());
        if map::include_in_dumps(self.span(self.dumped, to - self.dumped)) {
            self.dumped = to;
        }
    }

    /// Has core dumps include all of the arena, with no further call.
    pub(crate) fn dump_all(&mut self) {
        if self.dumped < self.mapped_pages() {
            self.dump_to(self.mapped_pages());
        }
        self.dumped = PageNo::MAX;
    }

    /// Keeps memory that was mapped anew out of core dumps from the mark on.
    pub(crate) fn dump_no_more_than_before(&self, renewed: Span) {
        if self.dumped != PageNo::MAX {
            map::leave_out_of_dumps(renewed.from(self.address(self.dumped)));
        }
    }

    /// The pages from `start` to `end` have turned cold: dumps end at `start` if they were the last.
    pub(crate) fn undump(&mut self, start: PageNo, end: PageNo) {
        let used = start.next_multiple_of(HUGE_PAGES);
        if end >= self.dumped && used + used / DUMP_SHARE + HUGE_PAGES < self.dumped {
            map::leave_out_of_dumps(self.span(used, self.dumped - used));
            self.dumped = used;
        }
    }
}
