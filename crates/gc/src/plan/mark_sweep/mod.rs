//! The plan `mark_sweep`: nothing moves; unmarked objects are free. The only plan whose collections may go in
//! slices.
//!
//! `incremental` is a collection in slices, `cycle` one that is under way. `sticky` decides when old marks
//! are kept, so that the next one traces new objects only: in slices, or at one go (`partial`).
//!
//! # Invariants
//! * New objects are unmarked while writes are tracked.
//!
//! Source: Boehm, Demers and Shenker 1991 (slices); Bates, "Improving the Results", for their bounds.

pub(crate) mod cycle;
pub(crate) mod incremental;
pub(crate) mod partial;
pub(crate) mod sticky;

use crate::heap::Heap;
use crate::mutator::budget::Budget;
use crate::mutator::thread::Thread;
use crate::plan::collection;
use crate::plan::contract::{Less, Plan};
use crate::plan::mark_sweep::cycle::Progress;
use crate::space::block::Block;

/// See the head of this file.
pub(crate) struct MarkSweep;

impl Plan for MarkSweep {
    /// No more than the heap got as its budget, so that resident free blocks make way for large objects.
    fn most_with_pool(&self, heap: &Heap, limit: usize) -> usize {
        limit.min(heap.sizing.found.bytes.saturating_add(heap.sizing.room))
    }

    fn block_came(&self, heap: &mut Heap, block: &Block) {
        heap.block_came(block);
    }

    fn block_goes_out(&self, heap: &mut Heap, block: &Block) {
        heap.block_goes_out(block);
    }

    fn step_if_due(&self, heap: &mut Heap, thread: &'static Thread) -> Progress {
        if heap.tracking.is_leaving {
            incremental::let_go(heap, Budget::new(heap.config.slice_ns, false));
        } else if heap.is_slice_due() {
            let budget = Budget::new(heap.config.slice_ns, false);
            return thread.standing_here(|| incremental::step(heap, thread, budget, false));
        }
        Progress::Nothing
    }

    /// Gets ready to track writes, if the next collection may be a partial one.
    fn prepare(&self, heap: &mut Heap) -> bool {
        heap.prepare_account_at_one_go();
        true
    }

    fn settle(&self, heap: &mut Heap, _free_before: usize) {
        heap.track_at_one_go();
    }

    /// Ends the collection in slices that is on; one that has not marked anything yet is dropped. Or makes a
    /// partial collection.
    fn collect_less(&self, heap: &mut Heap, thread: &'static Thread) -> Less {
        if heap.is_partial_due() {
            let done = thread.standing_here(|| partial::collect(heap, thread));
            return if done { Less::Enough } else { Less::Nothing };
        }
        if heap.incremental.cycle.is_none() {
            return Less::Nothing;
        }
        match thread.standing_here(|| incremental::finish(heap, thread)) {
            Progress::Done => Less::Enough,
            _ => Less::Nothing,
        }
    }

    fn collect_eagerly(&self, heap: &mut Heap, thread: &'static Thread, budget: Budget) -> Option<Progress> {
        if heap.tracking.is_leaving {
            incremental::let_go(heap, budget);
            return Some(Progress::More);
        }
        if heap.is_partial_due() {
            return thread.standing_here(|| partial::collect(heap, thread)).then_some(Progress::Done);
        }
        let in_slices = heap.config.slice_ns > 0 && heap.may_slice();
        in_slices.then(|| thread.standing_here(|| incremental::step(heap, thread, budget, false)))
    }

    fn collect(&self, heap: &mut Heap, thread: &'static Thread) -> bool {
        collection::collect(self, heap, thread)
    }

    fn ended(&self, heap: &mut Heap, spent_ns: u64) {
        heap.whole_ended(spent_ns);
    }
}
