//! The plan `mostly_copying`: objects in sparse blocks move, unless an ambiguous pointer leads to them.
//!
//! # Invariants
//! * The memory kept free for copies is at most the memory that evacuation frees, unless every object is to
//!   move (the setting `restless`).
//!
//! Source: Smith and Morrisett 1998; [`evacuation`](crate::plan::evacuation) has the departures.

use crate::heap::Heap;
use crate::plan::collection;
use crate::plan::contract::Plan;
use crate::plan::evacuation::{Copies, Copying};
use crate::sizing::policy::Found;
use crate::space::survivor_statistics::STEP_DENSE;
use crate::world::thread::Thread;

pub(crate) struct MostlyCopying {
    copies: Copies,
}

impl MostlyCopying {
    pub(super) const fn new() -> MostlyCopying {
        MostlyCopying { copies: Copies::new() }
    }
}

impl Plan for MostlyCopying {
    fn copies(&self) -> Option<&Copies> {
        Some(&self.copies)
    }

    fn copies_mut(&mut self) -> Option<&mut Copies> {
        Some(&mut self.copies)
    }

    fn choose(&mut self, heap: &mut Heap) {
        let all = heap.config.restless;
        let what = Copying { all, dense: STEP_DENSE, whole_slots: false, beside_new: false };
        self.copies.plan(heap, what, all, &[]);
    }

    /// Nothing is copied by the findings of a collection that could not afford to.
    fn size(&mut self, heap: &mut Heap, found: Found, _is_major: bool) {
        let copied =
            if self.copies.too_dear { Found { sparse: 0, young_to_copy: 0, ..found } } else { found };
        heap.set_room(copied);
    }

    fn collect(&mut self, heap: &mut Heap, thread: &'static Thread) -> bool {
        collection::collect(self, heap, thread)
    }
}
