//! The sizes of the old, unused and free regions, computed at the end of each collection.
//!
//! ```text
//!   |- old ───▶ old_max |- unused: room for copies -|- free -|
//! ```
//!
//! New objects are allocated in the free region. The sizes follow from the live bytes after the last major
//! collection, the sizes set then, and the present size of the old region. Under a limit, the *reserve* is
//! kept free for the copies of the next minor collection. The reserve is at most half of the free bytes, as
//! in the source: if every new object survives, the copies take as much memory as the new region.

use super::WASTE_MIN;
use crate::heap::Heap;
use crate::plan::appel::Appel;
use crate::sizing::limits;
use crate::sizing::policy::{Found, Major, Memory, Seen, Shape, Sizes};
use crate::space::size_class::BLOCK;

/// At most one part in this many of the free bytes is reserved for copies.
const RESERVE_MOST: usize = 2;
/// The free bytes in this many parts: before the first collection, one part less than half is handed out.
const FIRST_PARTS: usize = 8;
/// The reserve is the bytes that should be copied, and one part in this many more for surprises.
const SURPRISE: usize = 4;

impl Appel {
    /// The sizes of a heap of regions after a collection. `live` is the bytes alive by the last major
    /// collection, and `old` the size of the old region. `last` is that collection if this was a minor one.
    fn size_regions(&self, heap: &mut Heap, live: usize, old: usize, last: Option<&Major>) -> Sizes {
        let config = limits::under(heap.config, heap.limit());
        // The budget between two major collections may exceed the cache, however little minor ones cost.
        let found = Found { live: live.min(self.major_live), cost_ns: usize::MAX, ..Found::default() };
        let plenty = heap.plenty(&config, found);
        let (rates, memory) = (heap.sizing.watch.rates(), Memory::PLENTY);
        let shape = match heap.stays() {
            true => Shape::Regions { copies: self.sparse },
            false => Shape::COPIED,
        };
        heap.sizes(Seen { live, old, spread: live, shape, plenty, rates, memory }, last)
    }

    /// The size of the free region by the present state, in the middle of the budget.
    pub(super) fn free_region(&self, heap: &mut Heap) -> usize {
        match self.major {
            Some(major) => self.size_regions(heap, major.live, self.old_size, Some(&major)).free,
            None => heap.sizing.room,
        }
    }

    /// Sets when to collect next and by which kind, by the findings of a collection.
    pub(super) fn set_regions(&mut self, heap: &mut Heap, found: Found, is_major: bool) {
        heap.sizing.used = 0;
        let before = self.major.take().filter(|_| !is_major);
        self.old_live = found.live;
        self.waste = found.bytes.saturating_sub(found.live);
        if is_major {
            let is_much = self.waste > found.live.max(WASTE_MIN);
            let may_be_loose = heap.stays() && !self.copies.too_dear && !self.is_pinned;
            let is_loose = is_much && may_be_loose && !self.is_loose;
            self.is_loose = is_loose;
            self.is_pinned = is_much && !is_loose && !heap.config.restless;
            self.sparse = found.sparse;
            // Loose blocks are worth another major collection soon.
            self.waste_least = if is_loose { 0 } else { self.waste };
            self.major_live = found.live;
        }
        let holes_count = heap.stays() && !self.is_pinned;
        self.old_size = if holes_count { found.bytes.max(found.live) } else { found.live };
        let live = before.as_ref().map_or(self.old_size, |major| major.live);
        heap.sizing.found = found;
        let sizes = self.size_regions(heap, live, self.old_size, before.as_ref());
        self.major = before.or(Some(Major { live, sizes }));
        self.old_max = sizes.old_max;
        heap.sizing.room = sizes.free;
        heap.sizing.reserve = 0;
        let limit = heap.limit();
        if limit != usize::MAX {
            let free = limit.saturating_sub(found.bytes);
            let survivors = free as u128 * found.young_to_copy as u128 / found.young.max(1) as u128;
            let survivors = survivors as usize;
            heap.sizing.reserve = (survivors + survivors / SURPRISE).min(free / RESERVE_MOST);
            heap.sizing.room = heap.sizing.room.min((free - heap.sizing.reserve).max(BLOCK));
            if heap.stats.collections == 0 {
                // How much survives is not known yet: all of it must find room for its copy.
                heap.sizing.room = heap.sizing.room.min(free / FIRST_PARTS * (FIRST_PARTS / 2 - 1));
            }
        }
    }
}
