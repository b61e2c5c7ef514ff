//! How large the regions are until the next collection.
//!
//! ```text
//!   |- old ───▶ old_max |- unused: room for copies -|- free -|
//! ```
//!
//! Asked once at the end of each collection, with what is alive after the last major one, what the old region is now, and how that major
//! collection left the heap. The *reserve* below a limit is what the next minor collection should copy: half of what is free at most, the source's rule, as
//! a new region that lives on whole needs as much beside it.

use super::WASTE_MIN;
use crate::class::BLOCK;
use crate::heap::Heap;
use crate::sizing::{Found, Major};

/// Half of what is free is reserved for copies at most.
const RESERVE_MOST: usize = 2;
/// Before the first collection less than half of so many parts of what is free is handed out.
const FIRST_PARTS: usize = 8;
/// What should be copied, and for surprises one part of so many more.
const SURPRISE: usize = 4;

impl Heap {
    /// How large the free region should be by what is known now, in the middle of it.
    pub(crate) fn free_region(&mut self) -> usize {
        match self.appel.major {
            Some(major) => self.size_regions(major.live, self.appel.old_size, Some(&major)).free,
            None => self.room,
        }
    }

    /// Sets when to collect next and by which kind, by what a collection has found.
    pub(crate) fn set_regions(&mut self, found: Found, is_major: bool) {
        self.used = 0;
        let before = self.appel.major.take().filter(|_| !is_major);
        self.appel.old_live = found.live;
        self.appel.waste = found.bytes.saturating_sub(found.live);
        if is_major {
            let is_much = self.appel.waste > found.live.max(WASTE_MIN);
            let may_be_loose = self.stays() && !self.copies.too_dear && !self.appel.is_pinned;
            let is_loose = is_much && may_be_loose && !self.appel.is_loose;
            self.appel.is_loose = is_loose;
            self.appel.is_pinned = is_much && !is_loose && !self.config.restless;
            self.appel.sparse = found.sparse;
            // What lies loose is worth another major collection soon.
            self.appel.waste_least = if is_loose { 0 } else { self.appel.waste };
            self.appel.major_live = found.live;
        }
        let holes_count = self.stays() && !self.appel.is_pinned;
        self.appel.old_size = if holes_count { found.bytes.max(found.live) } else { found.live };
        let live = before.as_ref().map_or(self.appel.old_size, |major| major.live);
        self.found = found;
        let sizes = self.size_regions(live, self.appel.old_size, before.as_ref());
        self.appel.major = before.or(Some(Major { live, sizes }));
        self.appel.old_max = sizes.old_max;
        self.room = sizes.free;
        self.reserve = 0;
        let limit = self.limit();
        if limit != usize::MAX {
            let free = limit.saturating_sub(found.bytes);
            let survivors = free as u128 * found.young_to_copy as u128 / found.young.max(1) as u128;
            let survivors = survivors as usize;
            self.reserve = (survivors + survivors / SURPRISE).min(free / RESERVE_MOST);
            self.room = self.room.min((free - self.reserve).max(BLOCK));
            if self.stats.collections == 0 {
                // Nobody knows yet how much lives on: all of it can be copied.
                self.room = self.room.min(free / FIRST_PARTS * (FIRST_PARTS / 2 - 1));
            }
        }
    }
}
