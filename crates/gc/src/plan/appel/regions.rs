//! How large the regions are until the next collection.
//!
//! ```text
//!   |- old ───▶ old_max |- unused: room for copies -|- free -|
//! ```
//!
//! Asked once at the end of each collection, with the live bytes after the last major one, the size of the
//! old region now, and how that major collection left the heap. Below a limit, the *reserve* is kept free for
//! the copies of the next minor collection. It is half of what is free at most, the source's rule: a new
//! region that survives whole needs as much beside it.

use super::WASTE_MIN;
use crate::heap::Heap;
use crate::sizing::limits;
use crate::sizing::memory::Memory;
use crate::sizing::policy::{Found, Major, Seen, Shape, Sizes};
use crate::space::size_class::BLOCK;

/// At most one part in this many of the free bytes is reserved for copies.
const RESERVE_MOST: usize = 2;
/// The free bytes in this many parts: before the first collection, one part less than half is handed out.
const FIRST_PARTS: usize = 8;
/// The reserve is the bytes that should be copied, and one part in this many more for surprises.
const SURPRISE: usize = 4;

impl Heap {
    /// The sizes of a heap of regions after a collection. `live` is the bytes alive, as far as the last major
    /// collection knew, and `old` the size of the old region. `last` is that major collection if this was a
    /// minor one.
    pub(crate) fn size_regions(&mut self, live: usize, old: usize, last: Option<&Major>) -> Sizes {
        let config = limits::under(self.config, self.limit());
        // The budget between two major collections may exceed the cache, however little minor ones cost.
        let found = Found { live: live.min(self.appel.major_live), cost_ns: usize::MAX, ..Found::default() };
        let plenty = self.plenty(&config, found);
        let (rates, memory) = (self.sizing.watch.rates(), Memory::PLENTY);
        let shape = match self.stays() {
            true => Shape::Regions { copies: self.appel.sparse },
            false => Shape::COPIED,
        };
        self.sizes(Seen { live, old, spread: live, shape, plenty, rates, memory }, last)
    }

    /// How large the free region should be by what is known now, in the middle of it.
    pub(crate) fn free_region(&mut self) -> usize {
        match self.appel.major {
            Some(major) => self.size_regions(major.live, self.appel.old_size, Some(&major)).free,
            None => self.sizing.room,
        }
    }

    /// Sets when to collect next and by which kind, by the findings of a collection.
    pub(crate) fn set_regions(&mut self, found: Found, is_major: bool) {
        self.sizing.used = 0;
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
            // Loose blocks are worth another major collection soon.
            self.appel.waste_least = if is_loose { 0 } else { self.appel.waste };
            self.appel.major_live = found.live;
        }
        let holes_count = self.stays() && !self.appel.is_pinned;
        self.appel.old_size = if holes_count { found.bytes.max(found.live) } else { found.live };
        let live = before.as_ref().map_or(self.appel.old_size, |major| major.live);
        self.sizing.found = found;
        let sizes = self.size_regions(live, self.appel.old_size, before.as_ref());
        self.appel.major = before.or(Some(Major { live, sizes }));
        self.appel.old_max = sizes.old_max;
        self.sizing.room = sizes.free;
        self.sizing.reserve = 0;
        let limit = self.limit();
        if limit != usize::MAX {
            let free = limit.saturating_sub(found.bytes);
            let survivors = free as u128 * found.young_to_copy as u128 / found.young.max(1) as u128;
            let survivors = survivors as usize;
            self.sizing.reserve = (survivors + survivors / SURPRISE).min(free / RESERVE_MOST);
            self.sizing.room = self.sizing.room.min((free - self.sizing.reserve).max(BLOCK));
            if self.stats.collections == 0 {
                // How much survives is not known yet: all of it must find room for its copy.
                self.sizing.room = self.sizing.room.min(free / FIRST_PARTS * (FIRST_PARTS / 2 - 1));
            }
        }
    }
}
