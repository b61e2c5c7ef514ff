//! Constraints: the few facts of a plan that the parts below it must know, fixed for each plan.

use crate::config::PlanName;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Constraints {
    /// Objects may move.
    pub moves: bool,
    /// Collections may go in slices.
    pub slices: bool,
    /// A block counts as handed out as soon as a thread has it: the budget is whole blocks.
    pub counts_blocks: bool,
    /// Memory is kept back for copies of sparse blocks, by the findings of the last collection.
    pub reserves_copies: bool,
    /// A small object that its user frees may be the thread's next one.
    pub reuses_freed: bool,
}

const MARK_SWEEP: Constraints = Constraints {
    moves: false,
    slices: true,
    counts_blocks: false,
    reserves_copies: false,
    reuses_freed: true,
};
const MOSTLY_COPYING: Constraints = Constraints {
    moves: true,
    slices: false,
    counts_blocks: false,
    reserves_copies: true,
    reuses_freed: false,
};
const APPEL: Constraints = Constraints {
    moves: true,
    slices: false,
    counts_blocks: true,
    reserves_copies: false,
    reuses_freed: false,
};

impl PlanName {
    #[inline]
    pub(crate) const fn constraints(self) -> &'static Constraints {
        match self {
            PlanName::MarkSweep => &MARK_SWEEP,
            PlanName::MostlyCopying => &MOSTLY_COPYING,
            PlanName::Appel => &APPEL,
        }
    }

    /// Whether objects may move.
    pub(crate) const fn moves(self) -> bool {
        self.constraints().moves
    }
}
