//! The sizing policy of Standard ML of New Jersey (Cooper, Nettles and Subramanian 1992, section 2).
//!
//! ```text
//! heap size   = ratio * live      while that is below mem_limit,
//!               mem_limit         while three times the live bytes are below it,
//!               3 * live          beyond
//! ```
//!
//! A collection is a major one if the old region has reached half of the heap size. Half of the memory that
//! is not old is the free region; the other half is kept for copies of the objects in the free region.
//! Departure: in a heap whose objects stay, all but the live bytes and the bytes to copy is free.

use crate::sizing::policy::{Major, Policy, Seen, Shape, Sizes};

/// See the head of this file; the parameters as there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Original {
    pub(crate) mem_limit: usize,
    pub(crate) ratio: u32,
}

/// Beyond the limit the heap is this many times the live bytes.
const LEAST_RATIO: usize = 3;

impl Original {
    /// Bytes of the heap, with `live` bytes alive.
    fn heap_size(&self, live: usize) -> usize {
        let wanted = live.saturating_mul(self.ratio as usize);
        let least = live.saturating_mul(LEAST_RATIO);
        if wanted < self.mem_limit {
            wanted
        } else if least < self.mem_limit {
            self.mem_limit
        } else {
            least
        }
    }
}

impl Policy for Original {
    fn major(&self, seen: &Seen) -> Sizes {
        let heap = self.heap_size(seen.live);
        match seen.shape {
            Shape::InPlace { copies } => {
                Sizes { free: heap.saturating_sub(seen.live + copies), old_max: usize::MAX }
            }
            Shape::Regions { .. } => Sizes { free: (heap - seen.live.min(heap)) / 2, old_max: heap / 2 },
        }
    }

    fn minor(&self, seen: &Seen, last: &Major) -> Sizes {
        let heap = self.heap_size(last.live);
        Sizes { free: heap.saturating_sub(seen.old) / 2, old_max: last.sizes.old_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: usize = 1 << 10;

    /// The parameters that the source's appendix has for its benchmarks (Figures 13 to 15), by hand.
    #[test]
    fn the_formulas_of_section_2() {
        // Compiler, no pager: 14000 KB and a ratio of 1000. With 4000 KB alive 1000 times that is too much,
        // three times is not.
        let compiler = Original { mem_limit: 14_000 * K, ratio: 1000 };
        let sizes = compiler.major(&Seen::plain(4000 * K, 4000 * K, Shape::COPIED));
        assert_eq!(sizes, Sizes { free: 5000 * K, old_max: 7000 * K });
        // With 5000 KB alive three times that is beyond the limit: the free region is as large as what is
        // alive.
        let sizes = compiler.major(&Seen::plain(5000 * K, 5000 * K, Shape::COPIED));
        assert_eq!(sizes, Sizes { free: 5000 * K, old_max: 7500 * K });
        // Compiler, pager only: 9000 KB and 7. With 1000 KB alive seven times that fits.
        let pager_only = Original { mem_limit: 9000 * K, ratio: 7 };
        let sizes = pager_only.major(&Seen::plain(1000 * K, 1000 * K, Shape::COPIED));
        assert_eq!(sizes, Sizes { free: 3000 * K, old_max: 3500 * K });
    }

    #[test]
    fn the_free_region_is_recalculated_after_a_minor_collection() {
        let compiler = Original { mem_limit: 14_000 * K, ratio: 1000 };
        let sizes = compiler.major(&Seen::plain(4000 * K, 4000 * K, Shape::COPIED));
        let last = Major { live: 4000 * K, sizes };
        let minor = |old| compiler.minor(&Seen::plain(4000 * K, old, Shape::COPIED), &last);
        assert_eq!(minor(5000 * K), Sizes { free: 4500 * K, old_max: 7000 * K });
        assert_eq!(minor(6800 * K).free, 3600 * K);
    }

    #[test]
    fn a_heap_that_copies_nothing_has_no_half_for_copies() {
        let compiler = Original { mem_limit: 14_000 * K, ratio: 1000 };
        let free = |live, copies| compiler.major(&Seen::plain(live, live, Shape::InPlace { copies })).free;
        assert_eq!(
            [free(4000 * K, 0), free(4000 * K, 500 * K), free(5000 * K, 0)],
            [10_000 * K, 9500 * K, 10_000 * K]
        );
        assert_eq!(free(0, 0), 0, "with nothing alive the source's heap is empty");
    }
}
