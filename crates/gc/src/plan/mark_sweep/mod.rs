//! The plan `mark_sweep`: no object moves, and unmarked ones are freed. Only this plan collects in slices.
//!
//! `incremental` collects in slices: pieces, between which the program runs. `sticky` decides when marks are
//! kept. After that, the next collection traces new objects only, in slices or in one stop (`partial`).
//!
//! # Invariants
//! * New objects are unmarked while writes are tracked.
//!
//! Sources: Boehm, Demers and Shenker 1991 (slices); Bates 1999, "Improving the Results" (their bounds).

pub(crate) mod incremental;
pub(crate) mod partial;
pub(crate) mod sticky;

use crate::config::TRACE_NS_A_KIB;
use crate::heap::Heap;
use crate::plan::collection;
use crate::plan::contract::{Less, Plan, Progress};
use crate::plan::mark_sweep::incremental::{Cycle, OVERRUN_PART};
use crate::plan::mark_sweep::sticky::Sticky;
use crate::sizing::policy::Found;
use crate::space::block::Block;
use crate::world::budget::Budget;
use crate::world::thread::Thread;
use crate::write_tracking::Dirty;

/// The plan, with the state of collections in slices: between their slices and between each other.
pub(crate) struct MarkSweep {
    /// The collection in slices that is on.
    cycle: Option<Cycle>,
    /// Slices are made in idle time.
    pub is_idle: bool,
    /// Decides when old marks are kept.
    sticky: Sticky,
    /// A cycle could not be begun since the last collection.
    slicing_failed: bool,
    /// Nanoseconds that the last whole collection took for a KiB of the heap.
    ns_a_kib: u64,
    /// Nanoseconds of CPU time that the last end of a cycle took.
    end_ns: u64,
}

impl MarkSweep {
    pub(super) const fn new() -> MarkSweep {
        MarkSweep {
            cycle: None,
            is_idle: false,
            sticky: Sticky::new(),
            slicing_failed: false,
            ns_a_kib: TRACE_NS_A_KIB,
            end_ns: 0,
        }
    }
}

impl Plan for MarkSweep {
    fn is_in_cycle(&self) -> bool {
        self.cycle.is_some()
    }

    fn drop_cycle(&mut self, heap: &mut Heap) {
        self.abandon(heap);
    }

    fn end_account(&mut self, heap: &mut Heap) {
        self.sticky.forget();
        heap.end_account();
    }

    fn is_whole_in_vain(&self, heap: &Heap) -> bool {
        heap.config.slice_ns != 0 && (self.slicing_failed || heap.has_procedures || !Dirty::is_available())
    }

    fn most_to_hand_out(&self, heap: &Heap) -> usize {
        let room = heap.sizing.room;
        if self.cycle.is_some() { room + room / OVERRUN_PART } else { room }
    }

    fn size(&mut self, heap: &mut Heap, found: Found, _is_major: bool) {
        self.slicing_failed = false;
        // Nothing is copied, so that nothing is kept back for copies.
        heap.set_room(Found { sparse: 0, young_to_copy: 0, ..found });
    }

    /// The heap's size by its budget: resident free blocks make way for large objects.
    fn most_with_pool(&self, heap: &Heap, limit: usize) -> usize {
        limit.min(heap.sizing.found.bytes.saturating_add(heap.sizing.room))
    }

    fn block_came(&mut self, heap: &mut Heap, block: &Block) {
        self.enter(heap, block);
    }

    fn block_goes_out(&mut self, heap: &mut Heap, block: &Block) {
        let by_block = heap.tracks_by_block();
        if let Some(dirty) = self.account(heap) {
            dirty.block_goes_out(block, by_block);
        }
    }

    fn step_if_due(&mut self, heap: &mut Heap, thread: &'static Thread) -> Progress {
        if heap.tracking.is_leaving {
            incremental::let_go(self, heap, Budget::new(heap.config.slice_ns, None));
        } else if self.is_slice_due(heap) {
            let budget = Budget::new(heap.config.slice_ns, None);
            return thread.collecting(|| incremental::step(self, heap, thread, budget, false));
        }
        Progress::Nothing
    }

    /// Gets ready to track writes, if the next collection may be a partial one.
    fn prepare(&mut self, heap: &mut Heap) -> bool {
        self.prepare_account_at_one_go(heap);
        true
    }

    fn settle(&mut self, heap: &mut Heap, _free_before: usize) {
        partial::track_at_one_go(heap);
    }

    /// Ends the collection in slices that is on; a cycle that has not begun to mark is dropped. Or makes a
    /// partial collection.
    fn collect_less(&mut self, heap: &mut Heap, thread: &'static Thread) -> Less {
        if self.is_partial_due(heap) {
            let done = thread.collecting(|| partial::collect(self, heap, thread));
            return if done { Less::Enough } else { Less::Nothing };
        }
        if self.cycle.is_none() {
            return Less::Nothing;
        }
        match thread.collecting(|| incremental::finish(self, heap, thread)) {
            Progress::Done => Less::Enough,
            _ => Less::Nothing,
        }
    }

    fn collect_eagerly(
        &mut self,
        heap: &mut Heap,
        thread: &'static Thread,
        budget: Budget,
    ) -> Option<Progress> {
        if heap.tracking.is_leaving {
            incremental::let_go(self, heap, budget);
            return Some(Progress::More);
        }
        if self.is_partial_due(heap) {
            return thread.collecting(|| partial::collect(self, heap, thread)).then_some(Progress::Done);
        }
        let in_slices = heap.config.slice_ns > 0 && self.may_slice(heap);
        in_slices.then(|| thread.collecting(|| incremental::step(self, heap, thread, budget, false)))
    }

    fn collect(&mut self, heap: &mut Heap, thread: &'static Thread) -> bool {
        collection::collect(self, heap, thread)
    }

    fn ended(&mut self, heap: &mut Heap, spent_ns: u64) {
        self.whole_ended(heap, spent_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::heap::shared::Shared;

    #[test]
    fn nothing_is_reserved_for_copies() {
        const LIMIT: usize = 8 << 20;
        let reserve = |sparse| {
            let mut heap = Heap::new(Box::leak(Box::new(Shared::new())));
            heap.config = Config { fixed_bytes: LIMIT, limit_bytes: LIMIT, ..Config::DEFAULT };
            let found = Found { live: LIMIT / 4, sparse, young_to_copy: sparse, ..Found::default() };
            MarkSweep::new().size(&mut heap, found, true);
            heap.sizing.reserve
        };
        assert!(reserve(0) > 0);
        assert_eq!(reserve(LIMIT / 4), reserve(0));
    }
}
