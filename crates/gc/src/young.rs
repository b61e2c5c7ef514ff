//! How many of a slot's young objects live on: what tells the blocks that will be sparse, and how much there will be to copy.
//!
//! An object is young until its first collection. A survey counts, block by block, what it met and what it left; those that the last
//! one left already are taken for alive, so that a share of the young is never overestimated.

use crate::block::Block;
use crate::evacuate::{STEP_DENSE, STEPS};
use crate::heap::Slot;

/// The share that means: all of them.
pub(crate) const ALL: u32 = 256;
/// Fewer young objects say nothing of the next ones.
const YOUNG_MIN: u32 = 64;

/// Young objects of a slot.
#[derive(Clone, Copy, Default)]
pub(crate) struct Young {
    /// Those that the last collection met …
    pub met: u32,
    /// … and those of them it left alive.
    pub left: u32,
}

impl Slot {
    /// Counts the young of a block in which a collection met `allocated` objects and left `live`.
    pub(crate) fn count_young(&mut self, block: &Block, allocated: u32, live: u32) {
        let old = u32::from(block.survivors.replace(live as u16)).min(allocated);
        self.young.met += allocated - old;
        self.young.left += live.saturating_sub(old);
    }

    /// Learns from what was counted. Bytes of young objects that were met; and of those left alive as many as the next
    /// collection would have to copy.
    pub(crate) fn learn(&mut self) -> (usize, usize) {
        let Young { met, left } = core::mem::take(&mut self.young);
        if met >= YOUNG_MIN {
            self.survival = (u64::from(left) * u64::from(ALL) / u64::from(met)).min(u64::from(ALL)) as u32;
        }
        let to_copy = if is_sparse(self.survival as usize, ALL as usize) { left } else { 0 };
        (met as usize * self.size, to_copy as usize * self.size)
    }
}

/// Whether so many objects alive `of` so many make a block that is worth emptying.
pub(crate) fn is_sparse(live: usize, of: usize) -> bool {
    live * STEPS < STEP_DENSE * of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::NO_SLOT;

    #[test]
    fn a_slot_learns_what_lives_on() {
        let mut slot = Slot { size: 32, ..NO_SLOT };
        assert_eq!(slot.survival, ALL, "nothing is known: everything may live");
        slot.young = Young { met: 1000, left: 250 };
        assert_eq!(slot.learn(), (32_000, 8_000));
        assert_eq!(slot.survival, ALL / 4);
        slot.young = Young { met: YOUNG_MIN - 1, left: 0 };
        assert_eq!(slot.learn().1, 0);
        assert_eq!(slot.survival, ALL / 4, "too few to learn from");
        slot.young = Young { met: 1000, left: 900 };
        assert_eq!(slot.learn(), (32_000, 0), "dense blocks stay where they are");
    }
}
