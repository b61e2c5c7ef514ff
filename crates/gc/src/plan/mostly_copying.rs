//! The plan `mostly_copying`: objects in sparse blocks move, but for those that something ambiguous leads to.
//!
//! # Invariants
//! * No more is kept free for copies than emptying frees, unless all is to move (`restless`).
//!
//! Source: Smith and Morrisett 1998; [`evacuation`](crate::plan::evacuation) says where this departs from it.

use crate::heap::Heap;
use crate::mutator::thread::Thread;
use crate::plan::collection;
use crate::plan::contract::Plan;
use crate::plan::copies::Copying;
use crate::space::survivor_statistics::STEP_DENSE;

/// See the head of this file.
pub(crate) struct MostlyCopying;

impl Plan for MostlyCopying {
    fn choose(&self, heap: &mut Heap) {
        let all = heap.config.restless;
        heap.plan_copies(Copying { all, dense: STEP_DENSE, whole_slots: false, beside_new: false });
    }

    fn collect(&self, heap: &mut Heap, thread: &'static Thread) -> bool {
        collection::collect(self, heap, thread)
    }
}
