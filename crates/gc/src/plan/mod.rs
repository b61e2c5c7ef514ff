//! Plans: how a heap is collected.
//!
//! `mark_sweep` moves nothing and may collect in slices, `mostly_copying` empties sparse blocks, `appel` has
//! generations. All plans share `collection`, the frame of a whole collection, `sweep`, which follows a
//! trace, and `pause`, the account of stops. The plans that move share `evacuation`.
//!
//! # Invariants
//! * The heap's lock is held throughout a collection, and nothing takes a lock or allocates while the world
//!   stands still.
//! * Everything an ambiguous pointer may lead to is pinned before the first object moves.
//!
//! Source: Smith and Morrisett 1998 (`mostly_copying`); Cooper, Nettles and Subramanian 1992, after Appel
//! 1989 (`appel`).

pub(crate) mod appel;
pub(crate) mod collection;
pub(crate) mod constraints;
pub(crate) mod contract;
pub(crate) mod copies;
pub(crate) mod evacuation;
pub(crate) mod mark_sweep;
pub(crate) mod mostly_copying;
pub(crate) mod pause;
pub(crate) mod sweep;

use crate::config::PlanName;
use crate::heap::Heap;
use crate::plan::contract::Plan;

#[inline]
pub(crate) fn of(heap: &Heap) -> &'static dyn Plan {
    match heap.config.plan {
        PlanName::MarkSweep => &mark_sweep::MarkSweep,
        PlanName::MostlyCopying => &mostly_copying::MostlyCopying,
        PlanName::Appel => &appel::Generations,
    }
}
