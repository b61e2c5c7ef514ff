//! Plans: the ways to collect a heap.
//!
//! `mark_sweep` moves nothing and may collect in slices, `mostly_copying` empties sparse blocks, `appel` has
//! generations. All plans share three files: `collection` (the steps of a whole collection), `sweep` (the
//! step after a trace) and `pause` (measures the program's pauses). The plans that move share `evacuation`.
//!
//! # Invariants
//! * The heap's lock is held throughout a collection. No code takes a lock or allocates in a stopped world.
//! * Everything an ambiguous pointer may lead to is pinned before the first object moves.
//!
//! Sources: Smith and Morrisett 1998 (`mostly_copying`); Cooper, Nettles and Subramanian 1992 (`appel`).

pub(crate) mod appel;
pub(crate) mod collection;
pub(crate) mod contract;
pub(crate) mod evacuation;
pub(crate) mod mark_sweep;
pub(crate) mod mostly_copying;
pub(crate) mod pause;
pub(crate) mod sweep;

use crate::config::PlanName;
use crate::plan::appel::Appel;
use crate::plan::contract::Plan;
use crate::plan::mark_sweep::MarkSweep;
use crate::plan::mostly_copying::MostlyCopying;
use core::ops::{Deref, DerefMut};

/// A heap's plan, with the plan's state.
#[expect(clippy::large_enum_variant, reason = "a process has one, and it is static")]
pub(crate) enum PlanState {
    MarkSweep(MarkSweep),
    MostlyCopying(MostlyCopying),
    Appel(Appel),
}

impl PlanState {
    pub(crate) const fn new(name: PlanName) -> PlanState {
        match name {
            PlanName::MarkSweep => PlanState::MarkSweep(MarkSweep::new()),
            PlanName::MostlyCopying => PlanState::MostlyCopying(MostlyCopying::new()),
            PlanName::Appel => PlanState::Appel(Appel::new()),
        }
    }
}

impl Deref for PlanState {
    type Target = dyn Plan;

    #[inline]
    fn deref(&self) -> &(dyn Plan + 'static) {
        match self {
            PlanState::MarkSweep(plan) => plan,
            PlanState::MostlyCopying(plan) => plan,
            PlanState::Appel(plan) => plan,
        }
    }
}

impl DerefMut for PlanState {
    #[inline]
    fn deref_mut(&mut self) -> &mut (dyn Plan + 'static) {
        match self {
            PlanState::MarkSweep(plan) => plan,
            PlanState::MostlyCopying(plan) => plan,
            PlanState::Appel(plan) => plan,
        }
    }
}
