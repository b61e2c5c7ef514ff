//! The default sizing policy: it calculates the best allocation budget (`room`) from the costs of
//! collections and page faults and from the available memory. It needs no parameter.
//!
//! While memory is not short, the budget is that of `growth`. It is larger if the process was given memory to
//! use (`Memory::is_given`) and collections take time that could be saved with that memory.
//!
//! Otherwise, let C be the cost of a collection, S the cost of a page fault, L the memory that a collection
//! goes through, and M the memory available. With a budget of r bytes, each allocated byte costs:
//!
//! ```text
//!  cost ┤ ╲
//!       ┤  ╲  C / r                              r ≤ M - L: nothing is paged
//!       ┤   ╲____        ╱‾‾╲_______  paged      r > M - L: (C + S (L + r) / page) / r
//!       ┤        ╲______╱
//!       └────────────────┴──────────▶ r
//!                      M - L (the edge)
//! ```
//!
//! Beyond the edge, far more is paged than the bytes that do not fit. Allocation and collection use memory
//! in order, so each page is evicted before its turn comes: "The kernel's LRU page replacement policy
//! interacts especially poorly with these scans" (section 3 of Cooper, Nettles and Subramanian 1992). So the
//! cost falls up to the edge, jumps, and then falls towards S / page. The best budget is either at the edge
//! or far beyond it. If nothing can be paged out, it is at the edge.
//!
//! If objects stay in place, L exceeds the live bytes, because the holes between objects cannot all be used.
//! A heap of regions needs space for a second copy of each object that a major collection copies: L includes
//! these copies, and r is the growth of the old region. New objects get the rest of the memory available, as
//! in section 3 of that paper (`modified`). The paper searches for the best values of its parameters; here
//! `mem_limit` is the measured M, and `min_old_incr` the chosen r.

use crate::config::ROOM_MIN;
use crate::sizing::policy::{Major, Policy, Seen, Shape, Sizes};
use vellum_pages::PAGE;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Knee;

/// A heap that could do with less takes up to this many quarters of the given memory that fits: there are
/// other processes in the job.
const GIVEN_QUARTERS: usize = 3;
/// And at most this many times the live bytes, or [`GIVEN_LEAST`].
const GIVEN_TIMES: usize = 4;
const GIVEN_LEAST: usize = 8 << 20;
/// Collections that take one part in this many of the program's time are cheap enough.
const CHEAP_PART: u128 = 50;
/// Each page that does not fit pages out this many others, as long as there are others.
const SPREADS: usize = 8;
/// The budget a little beyond the edge: one part in this many of the memory available.
const NEAR_PART: usize = 16;
/// A heap that goes far beyond the memory available spreads, and is long in coming back. So it does that only
/// where it is this many times cheaper.
const FAR_TIMES: u128 = 2;
/// However much is old, the free region has one part in this many of the memory available. Each collection
/// uses all of it, so that it is resident at the expense of the old region.
const FREE_PART: usize = 16;

/// Bytes that are resident beside the budget, or become so. Half of the holes between live objects count as
/// budget: the other half is of sizes that are not requested.
fn looked_through(seen: &Seen) -> usize {
    match seen.shape {
        Shape::InPlace { copies } => seen.live.midpoint(seen.spread).saturating_add(copies),
        Shape::Regions { copies } => seen.live.saturating_add(copies.min(seen.live)),
    }
}

/// Bytes of a heap with a budget of `room`.
pub(crate) fn footprint(seen: &Seen, room: usize) -> usize {
    looked_through(seen).saturating_add(room)
}

/// The regions of a heap that has `room` bytes beside the live ones. The old region may grow by half of it,
/// and the part that it has not grown to is free.
pub(crate) fn share(live: usize, old: usize, room: usize) -> Sizes {
    let heap = live.saturating_add(room);
    Sizes { free: heap.saturating_sub(old).max(room / 4), old_max: live.saturating_add(room / 2) }
}

/// Nanoseconds a MiB handed out, where `ns` are spent each time that `room` bytes have been.
fn dear(ns: u128, room: usize) -> u128 {
    (ns << 20) / room.max(1) as u128
}

/// The most that is taken of given memory. Beyond, a small heap loses more by caches than it gains.
fn given_most(seen: &Seen) -> usize {
    seen.live.saturating_mul(GIVEN_TIMES).max(GIVEN_LEAST)
}

/// The budget with which collections are cheap enough.
fn enough(seen: &Seen) -> usize {
    let collection = u128::from(seen.rates.collection_ns(seen.live));
    let bytes = (collection << 20) * CHEAP_PART / u128::from(seen.rates.allocate_ns_a_mib().max(1));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The best budget.
fn room(seen: &Seen) -> usize {
    let (memory, plenty) = (&seen.memory, seen.plenty);
    let through = looked_through(seen);
    let fits = memory.target.saturating_sub(through);
    if plenty <= fits {
        return if memory.is_given {
            plenty.max(enough(seen).min(fits / 4 * GIVEN_QUARTERS).min(given_most(seen)))
        } else {
            plenty
        };
    }
    let most = memory.target.saturating_add(memory.paged).saturating_sub(through);
    // A budget of as much again as is scanned halves the cost of faults for each byte; more would gain little
    // and spread the program's own memory.
    let far = plenty.max(through).min(most);
    if far <= fits || memory.paged == 0 {
        return fits.max(ROOM_MIN);
    }
    let collection = u128::from(seen.rates.collection_ns(seen.live));
    let cost = |room: usize| {
        let all = through.saturating_add(room);
        let paged = all.saturating_sub(memory.target).saturating_mul(SPREADS).min(all) / PAGE;
        dear(collection + u128::from(memory.refault_ns) * paged as u128, room)
    };
    // Where little fits, it may be worth going beyond the edge a little.
    let near = fits.max(ROOM_MIN).max(memory.target / NEAR_PART);
    let edge = fits.max(ROOM_MIN);
    let stays = if cost(edge) <= cost(near) { edge } else { near };
    if cost(far).saturating_mul(FAR_TIMES) < cost(stays) { far } else { stays }
}

impl Knee {
    fn regions(live: usize, seen: &Seen) -> Sizes {
        let at_major = Seen { live, ..*seen };
        let grows = room(&at_major);
        let target = seen.memory.target;
        if footprint(&at_major, grows) <= target && grows >= seen.plenty {
            return share(live, seen.old, grows);
        }
        let free = target.saturating_sub(seen.old).max(target / FREE_PART);
        Sizes { free: free.min(live.saturating_add(seen.plenty)), old_max: live.saturating_add(grows) }
    }
}

impl Policy for Knee {
    fn major(&self, seen: &Seen) -> Sizes {
        match seen.shape {
            Shape::InPlace { .. } => Sizes { free: room(seen), old_max: usize::MAX },
            Shape::Regions { .. } => Knee::regions(seen.live, seen),
        }
    }

    fn minor(&self, seen: &Seen, last: &Major) -> Sizes {
        Knee::regions(last.live, seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::policy::Memory;
    use crate::sizing::rates::Rates;

    const MIB: usize = 1 << 20;
    const IN_PLACE: Shape = Shape::InPlace { copies: 0 };

    fn seen(live: usize, shape: Shape, plenty: usize, memory: Memory) -> Seen {
        let mut rates = Rates::UNKNOWN;
        // A millisecond a MiB.
        rates.learn(MIB, 0, 1_000_000, 0);
        Seen { live, old: live, spread: live, shape, plenty, rates, memory }
    }

    fn short(target: usize, paged: usize, refault_ns: u64) -> Memory {
        Memory { target, is_given: false, paged, refault_ns }
    }

    #[test]
    fn without_shortage_it_is_what_is_best_then() {
        for shape in [IN_PLACE, Shape::InPlace { copies: MIB }] {
            let sizes = Knee.major(&seen(10 * MIB, shape, 12 * MIB, Memory::PLENTY));
            assert_eq!(sizes, Sizes { free: 12 * MIB, old_max: usize::MAX });
        }
        let enough = short(23 * MIB, 0, 100_000);
        assert_eq!(
            Knee.major(&seen(10 * MIB, Shape::InPlace { copies: MIB }, 12 * MIB, enough)).free,
            12 * MIB
        );
    }

    #[test]
    fn memory_that_was_given_is_used_as_far_as_it_saves_anything() {
        let given = |target| Memory { is_given: true, ..short(target, 0, 0) };
        let free = |target| Knee.major(&seen(10 * MIB, IN_PLACE, 8 * MIB, given(target))).free;
        // 10 ms a collection, and a millisecond a MiB handed out: 500 MiB would be enough.
        assert_eq!([free(50 * MIB), free(19 * MIB)], [30 * MIB, 8 * MIB]);
        assert_eq!(free(10_000 * MIB), 40 * MIB, "four times what is alive");
        assert_eq!(free(16 * MIB), 6 * MIB, "too little is as short as if it were nobody's");
        // 100 ms a MiB handed out: 5 MiB are enough.
        let mut idle = seen(10 * MIB, IN_PLACE, 2 * MIB, given(100 * MIB));
        idle.rates.learn(0, MIB, 0, 100_000_000);
        assert!(Knee.major(&idle).free.abs_diff(5 * MIB) < MIB / 8);
    }

    #[test]
    fn where_nothing_can_be_paged_out_the_edge_is_kept() {
        let free = |live, target| Knee.major(&seen(live, IN_PLACE, 12 * MIB, short(target, 0, 2000))).free;
        assert_eq!(free(10 * MIB, 16 * MIB), 6 * MIB);
        assert_eq!(free(10 * MIB, 9 * MIB), ROOM_MIN, "nothing more is taken than must be");
    }

    #[test]
    fn collections_are_made_as_long_as_they_are_cheaper_than_faults() {
        // 10 MiB in 10 ms; 22 MiB are 5632 pages, half a second on a disk.
        let free =
            |target, s| Knee.major(&seen(10 * MIB, IN_PLACE, 12 * MIB, short(target, 1 << 30, s))).free;
        assert_eq!(free(14 * MIB, 100_000), 4 * MIB);
        assert_eq!(free(11 * MIB, 100_000), MIB);
        // Compressed memory at 3 us a page: 27 ms for 12 MiB beat 10 ms for each MiB, and are beaten by 10 ms
        // for five.
        assert_eq!(free(11 * MIB, 3000), 12 * MIB);
        assert_eq!(free(15 * MIB, 3000), 5 * MIB);
        // The live bytes do not fit, and every collection pages.
        assert_eq!(free(8 * MIB, 100_000), 12 * MIB);
    }

    #[test]
    fn half_of_the_holes_are_room() {
        let memory = short(20 * MIB, 0, 0);
        let holes = Seen { spread: 16 * MIB, ..seen(10 * MIB, IN_PLACE, 12 * MIB, memory) };
        assert_eq!(Knee.major(&holes).free, 7 * MIB);
    }

    #[test]
    fn paging_is_no_way_out_beyond_what_may_be_paged_out() {
        let free =
            |paged| Knee.major(&seen(10 * MIB, IN_PLACE, 12 * MIB, short(8 * MIB, paged, 100_000))).free;
        assert_eq!(free(6 * MIB), 4 * MIB);
        assert_eq!(free(MIB), ROOM_MIN);
    }

    #[test]
    fn what_stays_needs_no_second_region() {
        let sizes = |copies, target| {
            let memory = short(target, 1 << 30, 100_000);
            let shape = Shape::Regions { copies };
            Knee.major(&Seen { memory, ..seen(10 * MIB, shape, 12 * MIB, Memory::PLENTY) })
        };
        // Where all is copied, 16 MiB do not do for a major collection of 10, and it is put off. Where a MiB
        // is copied, the old region may grow by what is left.
        assert_eq!(sizes(usize::MAX, 16 * MIB), Sizes { free: 6 * MIB, old_max: 30 * MIB });
        assert_eq!(sizes(MIB, 16 * MIB), Sizes { free: 6 * MIB, old_max: 15 * MIB });
        assert_eq!(sizes(0, 16 * MIB), Sizes { free: 6 * MIB, old_max: 16 * MIB });
        // The live bytes alone do not fit: the same as if they were copied, with half the budget.
        assert_eq!(sizes(0, 8 * MIB), Sizes { free: MIB / 2, old_max: 22 * MIB });
    }

    #[test]
    fn regions_share_the_working_set() {
        let plenty = seen(10 * MIB, Shape::COPIED, 12 * MIB, Memory::PLENTY);
        assert_eq!(Knee.major(&plenty), Sizes { free: 12 * MIB, old_max: 16 * MIB });
        let last = Major { live: 10 * MIB, sizes: Knee.major(&plenty) };
        assert_eq!(Knee.minor(&Seen { old: 14 * MIB, ..plenty }, &last).free, 8 * MIB);
        assert_eq!(Knee.minor(&Seen { old: 40 * MIB, ..plenty }, &last).free, 3 * MIB);

        let memory = short(26 * MIB, 1 << 30, 100_000);
        let tight = Seen { memory, ..plenty };
        // Twice the live bytes and 6 MiB fit: a major collection pages nothing.
        assert_eq!(Knee.major(&tight), Sizes { free: 16 * MIB, old_max: 16 * MIB });
        assert_eq!(Knee.minor(&Seen { old: 15 * MIB, ..tight }, &last).free, 11 * MIB);
        // They do not: major collections page, and are made seldom; the free region is the rest.
        let tighter = Seen { memory: short(16 * MIB, 1 << 30, 100_000), ..plenty };
        assert_eq!(Knee.major(&tighter), Sizes { free: 6 * MIB, old_max: 30 * MIB });
        assert_eq!(Knee.minor(&Seen { old: 20 * MIB, ..tighter }, &last).free, MIB);
    }
}
