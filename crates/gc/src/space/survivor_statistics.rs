//! Statistics of the young objects of a slot (one size and layout): how many survive, and how scattered.
//! They predict which blocks will be sparse, whether emptying them pays, and how much there will be to copy.
//!
//! An object is young until its first collection. In each block the sweep counts all objects, and those that
//! are alive. Objects that survived the last sweep are assumed to be alive still, so the share of young
//! survivors is never overestimated.
//!
//! Survivors often lie together: a list that was allocated all at once leaves whole blocks alive and others
//! dead. Copying it gains nothing. Copying scattered survivors pays, because allocation then need not skip
//! from hole to hole. The number of holes is estimated by the number of runs of live objects.

use crate::space::block::Block;
use crate::space::slot::Slot;

/// Steps of density: a block is of step `n` if `n` to `n + 1` of this many parts of it should be alive.
pub(crate) const STEPS: usize = 16;
/// … and a step for blocks that should be wholly alive.
pub(crate) const STEPS_ALL: usize = STEPS + 1;
/// Blocks of this step and above are never emptied: copying half a block costs more than its holes do.
pub(crate) const STEP_DENSE: usize = 8;
/// The same step under `appel`, where only copies fill holes: an uncopied block wastes its holes.
pub(crate) const STEP_FULL: usize = 14;
/// The share of survivors if all survive.
pub(crate) const ALL: u32 = 256;
/// With fewer young objects, nothing is learnt.
const YOUNG_MIN: u32 = 64;
/// Going to the next hole costs as much as copying this many objects does beyond marking them.
const HOLE_OBJECTS: u32 = 8;

/// The objects that a sweep finds in a block.
#[derive(Clone, Copy, Default)]
pub(crate) struct Census {
    /// Objects that were allocated.
    pub allocated: u32,
    /// Allocated objects that the trace reached, here or before they moved.
    pub reached: u32,
    /// Runs of reached objects.
    pub runs: u32,
    /// Objects that are alive and here.
    pub live: u32,
}

/// Young objects of a slot.
#[derive(Clone, Copy, Default)]
pub(crate) struct Young {
    /// Young objects that the last collection met …
    pub met: u32,
    /// … and the survivors among them.
    pub left: u32,
    /// In blocks with young objects, all that were reached …
    pub reached: u32,
    /// … and the runs they lie in.
    pub runs: u32,
}

impl Slot {
    pub(crate) fn count_young(&mut self, block: &Block, found: Census) {
        let old = u32::from(block.survivors.replace(found.live as u16)).min(found.allocated);
        if old < found.allocated {
            self.young.met += found.allocated - old;
            self.young.left += found.reached.saturating_sub(old);
            self.young.reached += found.reached;
            self.young.runs += found.runs;
        }
    }

    /// Learns from the counts. Returns the bytes of the young objects that were met, and of the survivors the
    /// bytes that the next collection would copy.
    pub(crate) fn learn(&mut self) -> (usize, usize) {
        let Young { met, left, reached, runs } = core::mem::take(&mut self.young);
        if met >= YOUNG_MIN {
            self.survival = (u64::from(left) * u64::from(ALL) / u64::from(met)).min(u64::from(ALL)) as u32;
            self.scattered = runs * HOLE_OBJECTS > reached;
        }
        let to_copy = if self.is_sparse(self.survival as usize, ALL as usize) { left } else { 0 };
        (met as usize * self.size, to_copy as usize * self.size)
    }

    /// [`Slot::learn`] for a plan that copies every survivor.
    pub(crate) fn learn_all(&mut self) -> (usize, usize) {
        let left = self.young.left;
        (self.learn().0, left as usize * self.size)
    }

    /// Returns whether `live` live objects out of `of` make a block of this slot worth emptying.
    pub(crate) fn is_sparse(&self, live: usize, of: usize) -> bool {
        self.scattered && live * STEPS < STEP_DENSE * of
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::slot::NO_SLOT;

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
