//! Sizing: decides when to collect next, and how large the heap's regions (`plan::appel`) are until then.
//!
//! ```text
//!   a collection ends ──▶ Seen: findings, costs, memory ──▶ Policy ──▶ Sizes
//!                                                                        │
//!   objects stay, or few move      |- live -|---------- free ----------| ▼
//!   all live ones are copied       |- old ───▶ old_max |     |- free -|  the next collection
//! ```
//!
//! The next collection begins when `free` bytes were allocated. It is a major one if the old region has
//! reached `old_max`. A policy is a pure function: `original` and `modified` (the strategies of the source),
//! `square_root`, or `knee`, the default without parameters. While memory is not short, `knee` uses the
//! budget of the file `growth`; otherwise it uses the available memory that `watch` has measured.
//!
//! `config::sizing` parses the user's choice; `rates` and `refault` smooth measurements. `limits` keeps the
//! heap within the limits that it must never exceed, whatever the policy's sizes.
//!
//! Source: Cooper, Nettles and Subramanian 1992, sections 2 and 3, for copying heaps with regions.
//! Departure: here a policy also sizes heaps without copies, in which all but the live bytes is free.

pub(crate) mod growth;
pub(crate) mod knee;
pub(crate) mod limits;
mod modified;
mod original;
pub(crate) mod policy;
pub(crate) mod rates;
mod refault;
#[cfg(test)]
mod simulation;
mod square_root;
pub(crate) mod watch;

use crate::config::ROOM_MIN;
use crate::config::sizing::Sizing;
use crate::sizing::growth::Paid;
use crate::sizing::policy::{Found, Major, Policy, Seen, Sizes};
use crate::sizing::watch::Watch;

pub(crate) struct SizingState {
    /// Bytes handed out since the last collection.
    pub used: usize,
    /// Bytes of blocks and large objects when the last collection began.
    pub reached: usize,
    /// The allocation budget: bytes to hand out before the next collection.
    pub room: usize,
    /// Bytes below the limit that are kept back: see `limits`.
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
    /// [`SizingState::keeps_to`] for the total memory of the heap.
    pub keeps_all_to: usize,
    /// Bytes of the second-level cache; 0 if unknown.
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

impl Sizing {
    /// Calls `with` with the policy of this name.
    fn policy<R>(self, with: impl FnOnce(&dyn Policy) -> R) -> R {
        match self {
            Sizing::Knee => with(&knee::Knee),
            Sizing::Original { mem_limit, ratio } => with(&original::Original { mem_limit, ratio }),
            Sizing::Modified { mem_limit, min_new_size, min_old_incr } => {
                with(&modified::Modified { mem_limit, min_new_size, min_old_incr })
            }
            Sizing::SquareRoot { c } => with(&square_root::SquareRoot { c }),
        }
    }

    /// The sizes after a collection; `last` is the major one before if this was a minor one. However small
    /// the policy's sizes, some of the heap is free, to avoid a collection for each object.
    pub(crate) fn sizes(self, seen: &Seen, last: Option<&Major>) -> Sizes {
        let Sizes { free, old_max } = self.policy(|policy| match last {
            Some(last) => policy.minor(seen, last),
            None => policy.major(seen),
        });
        Sizes { free: free.max(ROOM_MIN), old_max: old_max.max(seen.live.saturating_add(ROOM_MIN)) }
    }
}
