//! The sizing policy of Cooper, Nettles and Subramanian 1992, section 3: a target for the working set.
//!
//! ```text
//! after a major collection   new_heap_size = max(mem_limit - live, min_new_size)
//!                            old_heap_size = max(mem_limit / 2, live + min_old_incr)
//! after a minor one          the new heap is smaller by what the old one grew, but not below min_new_size
//! ```
//!
//! The *new heap* is for new objects, the *old heap* for survivors. The new heap has all of the working set
//! that the old one does not use. The old heap fits in half of the working set, so that major collections
//! are fast. Departure: in a heap where most objects stay, the new heap is smaller by the bytes that the
//! next collection copies.

use crate::sizing::policy::{Major, Policy, Seen, Shape, Sizes};

/// See the head of this file; the parameters as there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modified {
    pub(crate) mem_limit: usize,
    pub(crate) min_new_size: usize,
    pub(crate) min_old_incr: usize,
}

impl Policy for Modified {
    fn major(&self, seen: &Seen) -> Sizes {
        let taken = match seen.shape {
            Shape::InPlace { copies } => seen.live + copies,
            Shape::Regions { .. } => seen.live,
        };
        let old_max = match seen.shape {
            Shape::InPlace { .. } => usize::MAX,
            Shape::Regions { .. } => (self.mem_limit / 2).max(seen.live.saturating_add(self.min_old_incr)),
        };
        Sizes { free: self.mem_limit.saturating_sub(taken).max(self.min_new_size), old_max }
    }

    fn minor(&self, seen: &Seen, last: &Major) -> Sizes {
        let grown = seen.old.saturating_sub(last.live);
        let Sizes { free, old_max } = self.major(&Seen { live: last.live, ..*seen });
        Sizes { free: free.saturating_sub(grown).max(self.min_new_size), old_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: usize = 1 << 10;

    /// The parameters that the source's appendix has for its compiler (Figure 19), by hand.
    #[test]
    fn the_formulas_of_section_3() {
        let pager_flushes =
            Modified { mem_limit: 10_000 * K, min_new_size: 1000 * K, min_old_incr: 5500 * K };
        let sizes = pager_flushes.major(&Seen::plain(2000 * K, 2000 * K, Shape::COPIED));
        assert_eq!(sizes, Sizes { free: 8000 * K, old_max: 7500 * K });
        // Half of the target, where the live bytes and the increment are less.
        let small = Modified { min_old_incr: 500 * K, ..pager_flushes };
        assert_eq!(small.major(&Seen::plain(2000 * K, 2000 * K, Shape::COPIED)).old_max, 5000 * K);
        // Much is alive: the lower bound on the working set is live + min_new_size.
        let sizes = pager_flushes.major(&Seen::plain(9500 * K, 9500 * K, Shape::COPIED));
        assert_eq!(sizes, Sizes { free: 1000 * K, old_max: 15_000 * K });
        // User-initiated flushing was best with a target of 0.
        let user_flushes = Modified { mem_limit: 0, min_new_size: 500 * K, min_old_incr: 5000 * K };
        let sizes = user_flushes.major(&Seen::plain(3000 * K, 3000 * K, Shape::COPIED));
        assert_eq!(sizes, Sizes { free: 500 * K, old_max: 8000 * K });
    }

    #[test]
    fn what_the_old_heap_grows_the_new_one_loses() {
        let policy = Modified { mem_limit: 10_000 * K, min_new_size: 1000 * K, min_old_incr: 5500 * K };
        let sizes = policy.major(&Seen::plain(2000 * K, 2000 * K, Shape::COPIED));
        let last = Major { live: 2000 * K, sizes };
        let minor = |old| policy.minor(&Seen::plain(2000 * K, old, Shape::COPIED), &last);
        assert_eq!(minor(3500 * K), Sizes { free: 6500 * K, old_max: 7500 * K });
        assert_eq!(minor(9800 * K).free, 1000 * K, "but not below its minimum");
    }

    #[test]
    fn a_heap_that_copies_nothing_takes_the_new_heap_for_its_room() {
        let policy = Modified { mem_limit: 10_000 * K, min_new_size: 1000 * K, min_old_incr: 5500 * K };
        let free = |live, copies| policy.major(&Seen::plain(live, live, Shape::InPlace { copies })).free;
        assert_eq!(
            [free(2000 * K, 0), free(2000 * K, 700 * K), free(9500 * K, 0)],
            [8000 * K, 7300 * K, 1000 * K]
        );
    }
}
