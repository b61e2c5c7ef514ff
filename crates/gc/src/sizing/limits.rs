//! The *reserve* (the part of a heap's limit that is kept back), and an estimate of a collection's cost.
//!
//! ```text
//! |- live -|------------------ room ------------------|- reserve -|  limit
//! ```
//!
//! Each block belongs to one slot (all objects of one size and arrangement of pointers). After a while nearly
//! every block has a survivor, so a slot that is first used late would find no free block. Such a slot may
//! use the reserve. Other slots, and the copies of a collection, may not.

use crate::config::Config;
use crate::sizing::policy::Found;

/// The reserve is at least one part in this many of the limit …
const RESERVE_PART: usize = 16;
/// … and at most one part in this many of the bytes that are not alive.
pub(crate) const RESERVE_MOST: usize = 3;

/// A collection's cost in nanoseconds: a fixed part, words of roots (two a nanosecond), objects, blocks.
pub(crate) fn cost_ns(root_words: usize, objects: usize, blocks: usize) -> usize {
    const ALWAYS_NS: usize = 4000;
    const OBJECT_NS: usize = 10;
    const BLOCK_NS: usize = 30;
    ALWAYS_NS + root_words / 2 + objects * OBJECT_NS + blocks * BLOCK_NS
}

/// The settings with the present limit.
pub(crate) fn under(config: Config, limit_bytes: usize) -> Config {
    Config { limit_bytes, ..config }
}

/// Bytes that the next collection should copy under a limit, and a quarter more; 0 without a limit, as
/// nothing is kept back then.
pub(crate) fn for_copies(config: &Config, found: Found) -> usize {
    match config.limit_bytes {
        usize::MAX => 0,
        limit => copies(found, limit.saturating_sub(found.live)),
    }
}

/// Bytes that the next collection should copy if `free` bytes are handed out before it, and a quarter more;
/// at most a third of `free`.
pub(crate) fn copies(found: Found, free: usize) -> usize {
    let young = (free as u128 * found.young_to_copy as u128 / found.young.max(1) as u128) as usize;
    ((found.sparse + young) / 4 * 5).min(free / RESERVE_MOST)
}

/// Bytes below the limit that no slot takes from the others.
pub(crate) fn reserve(config: &Config, found: Found) -> usize {
    match config.limit_bytes {
        usize::MAX => 0,
        limit => {
            let most = limit.saturating_sub(found.live) / RESERVE_MOST;
            (limit / RESERVE_PART).min(most).max(for_copies(config, found))
        }
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
        let still = Found { sparse: 0, young_to_copy: 0, ..found };
        assert_eq!(reserve(&fixed, still), MIB / 2, "where nothing moves, a part of the limit");
        // Half a MiB that is sparse, an eighth of the six that are free, and a quarter more.
        let copies = (MIB / 2 + 6 * MIB / 8) / 4 * 5;
        assert_eq!(reserve(&fixed, found), copies);
        let tight = Found { live: 7 * MIB, sparse: 4 * MIB, ..found };
        assert_eq!(reserve(&fixed, tight), MIB / RESERVE_MOST, "never more than a third of what is free");
        assert_eq!(reserve(&Config::DEFAULT, found), 0);
    }
}
