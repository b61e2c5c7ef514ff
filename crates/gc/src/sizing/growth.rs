//! The allocation budget (`room`: bytes to allocate before the next collection) while memory is plenty.
//!
//! ```text
//! |- live -|------------------ room ------------------|
//!          |- cache -|  the limit of `room` while little is alive: half of the second-level cache
//! ```
//!
//! * Without settings the budget grows with the square root of the live bytes, which is the optimum of
//!   Kirisame, Shenoy and Panchekha 2022. It is at least `Config::percent` of the live bytes.
//! * With a size (`Config::fixed_bytes`) the budget is that size minus the live bytes and the bytes to copy.
//! * With a divisor (`Config::divisor`, for programs written for the Boehm-Demers-Weiser collector) the
//!   budget is the greatest size of the heap so far, minus the live bytes ([`Paid`]). At that size the heap
//!   collects, not grows, if enough was allocated to pay for a scan. If the program itself collects early,
//!   its heap shrinks.
//!
//! While little is alive, a collection costs less than the cache misses of using more memory. The rules with
//! a size or a divisor then limit the budget to the cache. (Smith and Morrisett 1998, Table 7: client times
//! grow with the heap.)

use super::limits::for_copies;
use crate::config::{Config, ROOM_MEAN, ROOM_MIN, ROOM_PART};
use crate::sizing::policy::Found;

/// Nanoseconds saved for each KiB allocated by staying in the cache. Measured as 160 (clearing, and the first
/// use of each object), and halved to bound the cost of a wrong guess.
const SAVED_NS_PER_KIB: usize = 80;
/// The budget's part of the second-level cache: one part in this many. The rest is for live objects and the
/// program.
const CACHE_PART: usize = 2;

/// Bytes of the second-level cache; 0 if the C library does not report them.
pub(crate) fn cache_bytes() -> usize {
    #[cfg(target_env = "gnu")]
    // SAFETY: `sysconf` takes a number and touches no memory of ours.
    let cache = unsafe { libc::sysconf(libc::_SC_LEVEL2_CACHE_SIZE) };
    #[cfg(not(target_env = "gnu"))]
    let cache = 0;
    usize::try_from(cache).unwrap_or(0)
}

/// libgc's heaps grow by their size divided by the divisor, 16 MiB at most (MAXHINCR). They are larger than
/// necessary by half of that, on average. A heap with a divisor here is as much larger.
const STEP_MAX: usize = 16 << 20;
/// Descriptors and tables take about one part in this many of a heap. They count as parts of it, since a
/// program is to take no more memory than with libgc.
const BESIDE_PART: usize = 32;
/// The budget of a heap that has become far too large is twice the bytes that pay for a collection, or this
/// many bytes.
const ROOM_OVER: usize = 1 << 20;
/// A collection before one part in this many of the paying bytes was allocated is the program's own: memory
/// was released.
const EARLY_PART: usize = 2;

/// The size of the heap of a collector with a divisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paid {
    /// Bytes that the heap has reached, and is to use.
    bytes: usize,
    /// Bytes to be allocated that pay for a collection.
    pays: usize,
}

impl Paid {
    pub(crate) const NOTHING: Paid = Paid { bytes: 0, pays: 0 };

    /// A collection has found `found`, after `used` bytes were allocated in a heap of `reached` bytes.
    pub(crate) fn collected(&mut self, divisor: usize, found: Found, used: usize, reached: usize) {
        let is_early = used < self.pays / EARLY_PART;
        self.pays = (looked_through(found) / divisor).max(ROOM_MIN);
        self.bytes = self.bytes.max(reached);
        if is_early {
            let spread = found.bytes.max(found.live);
            self.bytes = self.bytes.min(spread + (self.pays * 2).max(ROOM_OVER));
        }
        let needed = found.live + self.pays;
        if self.bytes < needed {
            self.bytes = needed + ((needed / divisor).min(STEP_MAX) / 2).saturating_sub(needed / BESIDE_PART);
        }
    }

    /// The allocation budget: all that is free in the heap, as if it could be used to the last hole.
    pub(crate) fn room(&self, cache_bytes: usize, found: Found) -> usize {
        let free = self.bytes.saturating_sub(found.live).max(self.pays);
        match room_in_cache(cache_bytes, found) {
            Some(room) => free.min(room.max(self.pays)),
            None => free,
        }
    }

    /// Returns whether a heap of `bytes` bytes, of which `used` were allocated since the last collection,
    /// should collect rather than grow.
    pub(crate) fn is_enough(&self, bytes: usize, used: usize) -> bool {
        bytes > self.bytes && used >= self.pays
    }
}

/// The allocation budget without a divisor.
pub(crate) fn room(config: &Config, cache_bytes: usize, found: Found) -> usize {
    if config.fixed_bytes == 0 {
        let mean = (found.live as u128 * ROOM_MEAN as u128).isqrt() as usize;
        let part = (found.live / 100).saturating_mul(config.percent as usize);
        return part.max(mean.min(found.live * 4)).max(ROOM_MIN);
    }
    room_in(config.fixed_bytes, config, cache_bytes, found)
}

/// [`room`] of a heap with a least size (`Config::least_bytes`): as if the heap had been made of that size.
pub(crate) fn room_told(config: &Config, cache_bytes: usize, found: Found) -> usize {
    match config.least_bytes {
        0 => 0,
        least => room_in(least, config, cache_bytes, found),
    }
}

/// [`room`] in a heap of `bytes` bytes.
fn room_in(bytes: usize, config: &Config, cache_bytes: usize, found: Found) -> usize {
    let taken = found.live + for_copies(config, found);
    let room = bytes.saturating_sub(taken).max(bytes / ROOM_PART);
    room_in_cache(cache_bytes, found).map_or(room, |most| room.min(most))
}

/// The most budget where so little is alive that a collection costs less than the cache misses of using more.
fn room_in_cache(cache_bytes: usize, found: Found) -> Option<usize> {
    let cache = cache_bytes / CACHE_PART;
    let is_cheap = cache >= ROOM_MIN && found.cost_ns < (cache >> 10) * SAVED_NS_PER_KIB;
    is_cheap.then_some(cache)
}

/// The cost of a collection, in bytes scanned: objects with pointers are found and scanned, those without are
/// only found, and roots are only scanned.
fn looked_through(found: Found) -> usize {
    let atomic = found.live - found.scanned.min(found.live);
    found.scanned * 2 + atomic / 4 + found.roots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PlanName;
    use crate::sizing::limits::cost_ns;

    const MIB: usize = 1 << 20;
    const COSTLY: Found = Found { cost_ns: usize::MAX, ..Found::NOTHING };
    const FIXED: Config = Config { fixed_bytes: 8 * MIB, limit_bytes: 8 * MIB, ..Config::DEFAULT };

    #[test]
    fn a_heap_with_little_alive_stays_in_the_cache() {
        let little = Found { live: 8 << 10, cost_ns: cost_ns(10_000, 500, 70), ..Found::default() };
        assert_eq!(room(&FIXED, 2 * MIB, little), MIB);
        assert_eq!(room(&FIXED, 0, little), 8 * MIB - (8 << 10));
        let much = Found { live: 2 * MIB, cost_ns: cost_ns(10_000, 100_000, 500), ..Found::default() };
        assert_eq!(room(&FIXED, 2 * MIB, much), 6 * MIB);
        let full = Found { live: 8 * MIB, ..much };
        assert_eq!(room(&FIXED, 2 * MIB, full), 8 * MIB / ROOM_PART);
    }

    #[test]
    fn what_collections_look_through_is_paid_for() {
        let found = Found { live: 7 * MIB, scanned: 3 * MIB, roots: 2 * MIB, ..COSTLY };
        for (divisor, pays) in [(3, 3 * MIB), (1, 9 * MIB), (1000, ROOM_MIN)] {
            let mut heap = Paid::NOTHING;
            heap.collected(divisor, found, 0, 0);
            let room = heap.room(2 * MIB, found);
            assert!((pays..pays + (7 * MIB + pays) / divisor / 2).contains(&room) || room == pays, "{room}");
            assert!(heap.is_enough(7 * MIB + room + 1, pays));
            assert!(!heap.is_enough(7 * MIB + room + 1, pays - 1), "it grows until that is allocated");
            assert!(!heap.is_enough(7 * MIB + room, room));
        }
    }

    #[test]
    fn a_heap_with_a_divisor_uses_all_that_it_has_reached() {
        let mut heap = Paid::NOTHING;
        let much = Found { live: 12 * MIB, scanned: 9 * MIB, ..COSTLY };
        heap.collected(3, much, 0, 0);
        let room = heap.room(2 * MIB, much);
        assert!(room < 13 * MIB);
        heap.collected(3, much, room, 25 * MIB);
        assert_eq!(heap.room(2 * MIB, much), 13 * MIB, "holes that could not be used have made it larger");
        let little = Found { live: MIB, scanned: MIB / 2, ..COSTLY };
        heap.collected(3, little, 13 * MIB, 25 * MIB);
        assert_eq!(heap.room(2 * MIB, little), 24 * MIB);
        heap.collected(3, little, ROOM_MIN / 2 - 1, 25 * MIB);
        assert_eq!(heap.room(2 * MIB, little), ROOM_OVER, "the program has collected by itself");
        let next_to_nothing = Found { cost_ns: 0, ..little };
        heap.collected(3, next_to_nothing, MIB, 25 * MIB);
        assert_eq!(heap.room(2 * MIB, next_to_nothing), MIB, "it stays in the cache where that costs less");
    }

    #[test]
    fn a_heap_that_was_told_a_size_has_it_from_then_on_and_grows_beyond() {
        let told = Config { least_bytes: 8 * MIB, ..Config::DEFAULT };
        let found = Found { live: MIB, cost_ns: usize::MAX, ..Found::default() };
        assert_eq!(room_told(&Config::DEFAULT, 2 * MIB, found), 0);
        assert_eq!(room_told(&told, 2 * MIB, found), 7 * MIB);
        let grown = Found { live: 64 * MIB, ..found };
        assert!(room_told(&told, 2 * MIB, grown) < room(&told, 2 * MIB, grown));
        let little = Found { live: 8 << 10, cost_ns: 0, ..found };
        assert_eq!(room_told(&told, 2 * MIB, little), MIB, "but it stays in the cache where that costs less");
    }

    #[test]
    fn what_is_to_be_copied_is_no_room() {
        let found = Found {
            live: 2 * MIB,
            sparse: MIB / 2,
            young: 4 * MIB,
            young_to_copy: MIB / 2,
            ..Found::default()
        };
        let copying = Config { plan: PlanName::MostlyCopying, ..FIXED };
        assert_eq!(room(&copying, 0, found), 6 * MIB - for_copies(&copying, found));
    }
}
