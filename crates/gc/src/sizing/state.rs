//! The state for sizing a heap: the budget and its use, the limits, and the findings of the last collection.

use crate::config::ROOM_MIN;
use crate::sizing::growth::Paid;
use crate::sizing::policy::Found;
use crate::sizing::watch::Watch;

/// See the head of this file.
pub(crate) struct SizingState {
    /// Bytes handed out since the last collection.
    pub used: usize,
    /// Bytes of blocks and large objects when the last collection began.
    pub reached: usize,
    /// The allocation budget: bytes to hand out before the next one.
    pub room: usize,
    /// Bytes below the limit that are kept back: see `sizing`.
    pub reserve: usize,
    /// The findings of the last collection.
    pub found: Found,
    /// The heap's size by the rule of `Config::divisor`.
    pub paid: Paid,
    /// The memory available, and the costs of collecting.
    pub watch: Watch,
    /// Words of roots at the last collection that was made at one go.
    pub root_words: usize,
    /// Bytes of blocks and large objects that are not exceeded: the limit, or their bytes when it was set.
    pub keeps_to: usize,
    /// The same for all that the heap takes.
    pub keeps_all_to: usize,
    /// Bytes of the second-level cache; 0 if they are not known.
    pub cache_bytes: usize,
}

impl SizingState {
    pub(crate) const fn new() -> SizingState {
        SizingState {
            used: 0,
            reached: 0,
            room: ROOM_MIN,
            reserve: 0,
            found: Found::NOTHING,
            paid: Paid::NOTHING,
            watch: Watch::new(),
            root_words: 0,
            keeps_to: usize::MAX,
            keeps_all_to: usize::MAX,
            cache_bytes: 0,
        }
    }
}
