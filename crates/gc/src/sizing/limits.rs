//! What of a heap's limit is kept back, and what collecting costs.
//!
//! ```text
//! |- live -|------------------ room ------------------|- reserve -|  limit
//! ```
//!
//! The *reserve* is what one slot may not take from the others, or from copies. Blocks belong to slots: after a while nearly each has a
//! survivor, and a slot that comes late finds none. It may have the reserve.

use super::Found;
use crate::class::BLOCK;
use crate::config::{Config, Plan};
use crate::heap::Heap;

/// The reserve is at least one part of so many of the limit …
const RESERVE_PART: usize = 16;
/// … and at most of what is not alive.
pub(super) const RESERVE_MOST: usize = 3;
/// A slot that has no block takes the reserve sooner than to collect before one part of so many of the room is used.
const EARLY_PART: usize = 4;

/// A collection's cost by what it does, in nanoseconds: that it is made at all, words of roots (two a nanosecond), objects, blocks.
pub(crate) fn cost_ns(root_words: usize, objects: usize, blocks: usize) -> usize {
    const ALWAYS_NS: usize = 4000;
    const OBJECT_NS: usize = 10;
    const BLOCK_NS: usize = 30;
    ALWAYS_NS + root_words / 2 + objects * OBJECT_NS + blocks * BLOCK_NS
}

/// The settings with the limit there is now.
pub(super) fn under(config: Config, limit_bytes: usize) -> Config {
    Config { limit_bytes, ..config }
}

/// Bytes that the next collection should copy under a limit, and a quarter more; without one nothing is kept back for them.
pub(super) fn for_copies(config: &Config, found: Found) -> usize {
    match config.limit_bytes {
        usize::MAX => 0,
        limit => copies(config.plan, found, limit.saturating_sub(found.live)),
    }
}

/// Bytes that the next collection should copy if `free` bytes are handed out before it, and a quarter more; but a third of these at most.
pub(super) fn copies(plan: Plan, found: Found, free: usize) -> usize {
    if plan != Plan::MostlyCopying {
        return 0;
    }
    let young = (free as u128 * found.young_to_copy as u128 / found.young.max(1) as u128) as usize;
    ((found.sparse + young) / 4 * 5).min(free / RESERVE_MOST)
}

/// Bytes below the limit that no slot takes from the others.
pub(super) fn reserve(config: &Config, found: Found) -> usize {
    match config.limit_bytes {
        usize::MAX => 0,
        limit => {
            let most = limit.saturating_sub(found.live) / RESERVE_MOST;
            (limit / RESERVE_PART).min(most).max(for_copies(config, found))
        }
    }
}

impl Heap {
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

    #[test]
    fn the_reserve_is_what_should_be_copied() {
        let fixed = Config { fixed_bytes: 8 * MIB, limit_bytes: 8 * MIB, ..Config::DEFAULT };
        let found = Found {
            live: 2 * MIB,
            sparse: MIB / 2,
            young: 4 * MIB,
            young_to_copy: MIB / 2,
            ..Found::default()
        };
        assert_eq!(reserve(&fixed, found), MIB / 2, "where nothing moves, a part of the limit");
        let copying = Config { plan: Plan::MostlyCopying, ..fixed };
        // Half a MiB that is sparse, an eighth of the six that are free, and a quarter more.
        let copies = (MIB / 2 + 6 * MIB / 8) / 4 * 5;
        assert_eq!(reserve(&copying, found), copies);
        let tight = Found { live: 7 * MIB, sparse: 4 * MIB, ..found };
        assert_eq!(reserve(&copying, tight), MIB / RESERVE_MOST, "never more than a third of what is free");
        assert_eq!(reserve(&Config { plan: Plan::MostlyCopying, ..Config::DEFAULT }, found), 0);
    }
}
