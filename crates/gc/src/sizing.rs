//! When to collect next, and how much of the limit is kept back.
//!
//! ```text
//! |- live -|------------------ room ------------------|- reserve -|  limit
//!          |- cache -| is the room where a collection costs next to nothing
//! ```
//!
//! Without a size given, the best room grows with the square root of what is alive (Kirisame, Shenoy and Panchekha 2022). With one, memory
//! is there to be used, but not whatever it costs: where little is alive, a collection costs less than the cache misses of going through
//! all of the memory do. So the heap goes round within the second-level cache then. (The source's Table 7 shows the same: its client times
//! grow with the heap.)
//!
//! The *reserve* is what one slot may not take from the others, or from copies. Blocks belong to slots: after a while nearly each has a
//! survivor, and a slot that comes late finds none. It may have the reserve.

use crate::class::BLOCK;
use crate::config::{Config, Plan, ROOM_MEAN, ROOM_MIN, ROOM_PART};
use crate::heap::Heap;

/// What a collection found, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// Bytes of blocks and large objects.
    pub bytes: usize,
    /// Bytes of objects alive.
    pub live: usize,
    /// Of these, in blocks that the next collection should empty.
    pub sparse: usize,
    /// Bytes of young objects that it met …
    pub young: usize,
    /// … and, if as many of the next live on, what is to be copied of them.
    pub young_to_copy: usize,
    /// What the next one should cost: [`cost_ns`].
    pub cost_ns: usize,
}

/// The reserve is at least one part of so many of the limit …
const RESERVE_PART: usize = 16;
/// … and at most of what is not alive.
const RESERVE_MOST: usize = 3;
/// A slot that has no block takes the reserve sooner than to collect before one part of so many of the room is used.
const EARLY_PART: usize = 4;
/// What is saved for each KiB allocated by staying in the cache, in nanoseconds: measured as 160 (clearing, and the first use of
/// each object), and halved, so that a wrong guess costs no more than is gained.
const SAVED_NS_PER_KIB: usize = 80;
/// Of the second-level cache one part of so many is room; the rest is for what is alive, and for the program.
const CACHE_PART: usize = 2;

/// A collection's cost by what it does, in nanoseconds: that it is made at all, words of roots (two a nanosecond), objects, blocks.
pub(crate) fn cost_ns(root_words: usize, objects: usize, blocks: usize) -> usize {
    const ALWAYS_NS: usize = 4000;
    const OBJECT_NS: usize = 10;
    const BLOCK_NS: usize = 30;
    ALWAYS_NS + root_words / 2 + objects * OBJECT_NS + blocks * BLOCK_NS
}

/// Bytes of the second-level cache; 0 where the C library does not know them.
pub(crate) fn cache_bytes() -> usize {
    #[cfg(target_env = "gnu")]
    // SAFETY: plain call.
    let cache = unsafe { libc::sysconf(libc::_SC_LEVEL2_CACHE_SIZE) };
    #[cfg(not(target_env = "gnu"))]
    let cache = 0;
    usize::try_from(cache).unwrap_or(0)
}

/// Bytes that the next collection should copy, and a quarter more.
fn for_copies(config: &Config, found: Found) -> usize {
    if config.plan != Plan::MostlyCopying {
        return 0;
    }
    let free = config.limit_bytes.saturating_sub(found.live);
    let young = (free as u128 * found.young_to_copy as u128 / found.young.max(1) as u128) as usize;
    ((found.sparse + young) / 4 * 5).min(free / RESERVE_MOST)
}

/// Bytes below the limit that no slot takes from the others.
fn reserve(config: &Config, found: Found) -> usize {
    match config.limit_bytes {
        usize::MAX => 0,
        limit => {
            let most = limit.saturating_sub(found.live) / RESERVE_MOST;
            (limit / RESERVE_PART).min(most).max(for_copies(config, found))
        }
    }
}

/// Bytes to hand out before the next collection.
fn room(config: &Config, cache_bytes: usize, found: Found) -> usize {
    if config.fixed_bytes == 0 {
        let mean = (found.live as u128 * ROOM_MEAN as u128).isqrt() as usize;
        let part = (found.live / 100).saturating_mul(config.percent as usize);
        return part.max(mean.min(found.live * 4)).max(ROOM_MIN);
    }
    let taken = found.live + if config.limit_bytes == usize::MAX { 0 } else { for_copies(config, found) };
    let room = config.fixed_bytes.saturating_sub(taken).max(config.fixed_bytes / ROOM_PART);
    let cache = cache_bytes / CACHE_PART;
    let is_cheap = cache >= ROOM_MIN && found.cost_ns < (cache >> 10) * SAVED_NS_PER_KIB;
    if is_cheap { room.min(cache) } else { room }
}

impl Heap {
    /// Sets when to collect next, by what the last collection found.
    pub(crate) fn set_room(&mut self, found: Found) {
        self.used = 0;
        let found = match self.copies.too_dear {
            true => Found { sparse: 0, young_to_copy: 0, ..found },
            false => found,
        };
        let config = Config { limit_bytes: self.limit(), ..self.config };
        self.reserve = reserve(&config, found);
        self.room = room(&config, self.cache_bytes, found);
    }

    /// Whether a slot that has no room may have a new block; if not, it is time to collect.
    pub(crate) fn may_have_block(&self) -> bool {
        let (after, limit) = (self.bytes + BLOCK, self.limit());
        after + self.reserve <= limit || (after <= limit && self.used < self.room / EARLY_PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;
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
    fn the_reserve_is_what_should_be_copied() {
        let found = Found {
            live: 2 * MIB,
            sparse: MIB / 2,
            young: 4 * MIB,
            young_to_copy: MIB / 2,
            ..Found::default()
        };
        assert_eq!(reserve(&FIXED, found), MIB / 2, "where nothing moves, a part of the limit");
        let copying = Config { plan: Plan::MostlyCopying, ..FIXED };
        // Half a MiB that is sparse, an eighth of the six that are free, and a quarter more.
        let copies = (MIB / 2 + 6 * MIB / 8) / 4 * 5;
        assert_eq!(reserve(&copying, found), copies);
        assert_eq!(room(&copying, 0, found), 6 * MIB - copies);
        let tight = Found { live: 7 * MIB, sparse: 4 * MIB, ..found };
        assert_eq!(reserve(&copying, tight), MIB / RESERVE_MOST, "never more than a third of what is free");
        assert_eq!(reserve(&Config { plan: Plan::MostlyCopying, ..Config::DEFAULT }, found), 0);
    }
}
