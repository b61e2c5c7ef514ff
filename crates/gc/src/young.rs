//! What a slot's young objects are known for: how many of them live on, and whether those lie scattered. It tells the blocks that will be
//! sparse, whether emptying them is worth it, and how much there will be to copy.
//!
//! An object is young until its first collection. A survey counts, block by block, what it met and what it left; those that the last
//! one left already are taken for alive, so that a share of the young is never overestimated.
//!
//! What lives on often lies together: a list that was made at a stroke leaves whole blocks alive and others dead. Nothing is gained
//! by copying that. What is gained by copying what lies scattered is that allocation need not go from hole to hole; so the holes
//! are counted, as the runs of live objects between them.

use crate::block::Block;
use crate::evacuate::{STEP_DENSE, STEPS};
use crate::heap::Slot;

/// The share that means: all of them.
pub(crate) const ALL: u32 = 256;
/// Fewer young objects say nothing of the next ones.
const YOUNG_MIN: u32 = 64;
/// Going to the next hole costs as much as copying so many objects does beyond marking them.
const HOLE_OBJECTS: u32 = 8;

/// What a survey finds in a block.
#[derive(Clone, Copy, Default)]
pub(crate) struct Census {
    /// Objects that were allocated.
    pub allocated: u32,
    /// Of these, reached by the trace, here or on their way elsewhere.
    pub reached: u32,
    /// Runs of reached objects.
    pub runs: u32,
    /// Objects that are alive and here.
    pub live: u32,
}

/// Young objects of a slot.
#[derive(Clone, Copy, Default)]
pub(crate) struct Young {
    /// Those that the last collection met …
    pub met: u32,
    /// … and those of them it left alive.
    pub left: u32,
    /// In blocks with young objects, all that were reached …
    pub reached: u32,
    /// … and the runs they lie in.
    pub runs: u32,
}

impl Slot {
    /// Counts the young of a block.
    pub(crate) fn count_young(&mut self, block: &Block, found: Census) {
        let old = u32::from(block.survivors.replace(found.live as u16)).min(found.allocated);
        if old < found.allocated {
            self.young.met += found.allocated - old;
            self.young.left += found.reached.saturating_sub(old);
            self.young.reached += found.reached;
            self.young.runs += found.runs;
        }
    }

    /// Learns from what was counted. Bytes of young objects that were met; and of those left alive as many as the next
    /// collection would have to copy.
    pub(crate) fn learn(&mut self) -> (usize, usize) {
        let Young { met, left, reached, runs } = core::mem::take(&mut self.young);
        if met >= YOUNG_MIN {
            self.survival = (u64::from(left) * u64::from(ALL) / u64::from(met)).min(u64::from(ALL)) as u32;
            self.scattered = runs * HOLE_OBJECTS > reached;
        }
        let to_copy = if self.is_sparse(self.survival as usize, ALL as usize) { left } else { 0 };
        (met as usize * self.size, to_copy as usize * self.size)
    }

    /// The same for a plan that copies all that lives.
    pub(crate) fn learn_all(&mut self) -> (usize, usize) {
        let left = self.young.left;
        (self.learn().0, left as usize * self.size)
    }

    /// Whether so many objects alive `of` so many make a block of this slot worth emptying.
    pub(crate) fn is_sparse(&self, live: usize, of: usize) -> bool {
        self.scattered && live * STEPS < STEP_DENSE * of
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::NO_SLOT;

    #[test]
    fn a_slot_learns_what_lives_on() {
        let mut slot = Slot { size: 32, ..NO_SLOT };
        assert_eq!(slot.survival, ALL, "nothing is known: everything may live");
        slot.young = Young { met: 1000, left: 250, reached: 250, runs: 200 };
        assert_eq!(slot.learn(), (32_000, 8_000));
        assert_eq!(slot.survival, ALL / 4);
        slot.young = Young { met: YOUNG_MIN - 1, left: 0, reached: 0, runs: 0 };
        assert_eq!(slot.learn().1, 0);
        assert_eq!(slot.survival, ALL / 4, "too few to learn from");
        slot.young = Young { met: 1000, left: 900, reached: 900, runs: 900 };
        assert_eq!(slot.learn(), (32_000, 0), "dense blocks stay where they are");
    }

    #[test]
    fn what_lies_together_is_left_where_it_is() {
        let mut slot = Slot { size: 16, ..NO_SLOT };
        slot.young = Young { met: 1000, left: 250, reached: 250, runs: 3 };
        assert_eq!(slot.learn(), (16_000, 0));
        assert!(!slot.is_sparse(1, 1000));
        slot.young = Young { met: 1000, left: 250, reached: 250, runs: 100 };
        assert_eq!(slot.learn(), (16_000, 4_000));
        assert!(slot.is_sparse(1, 1000) && !slot.is_sparse(600, 1000));
    }
}
