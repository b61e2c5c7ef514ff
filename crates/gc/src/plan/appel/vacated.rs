//! The use of the blocks that a major collection has vacated (emptied by copying): three strategies.
//!
//! ```text
//!                cold end: copies                             warm end: new objects
//!  REUSE      │ free before ...                         │ vacated, lowest address last │
//!  COPY_BACK  │ by address, lowest first: the second pass copies there, new objects lie above │
//!  DRIFT      │ free before ...                         │          left behind: │ oldest ... newest │
//! ```
//!
//! Each row is the pool of free blocks after the collection, from its cold end to its warm end. The first row
//! holds for two settings: *stay*, the default, vacates sparse blocks only, and *reuse* vacates all. Both put
//! the free region where the old one was: its pages are resident. *Copy back* returns the old region to the
//! lowest addresses. *Drift* leaves the vacated pages for the kernel to evict, and copies to memory that was
//! never used or was left behind longest ago. The heap thus moves through a span of [`SPAN`] times its old
//! region (in the source, an address space of 4 GiB). Under `max_bytes` no block is left behind.
//!
//! Source: Cooper, Nettles and Subramanian 1992, sections 2 (copying back), 3 (drift) and 6 ("if we had
//! placed the free region so as to take advantage of the prepaging of new space").

use crate::config::{AfterMajor, Config};
use crate::heap::Heap;
use crate::plan::appel::Appel;
use crate::plan::evacuation::Copying;
use crate::space::size_class::BLOCK;
use crate::space::survivor_statistics::{STEP_DENSE, STEP_FULL};
use vellum_sys::Span;

/// A heap that drifts leaves at most this many blocks behind for each block of its old region.
const SPAN: usize = 4;

impl Heap {
    /// Stops tracking writes to the blocks of the pool from `first` on, which are sorted by address: writing
    /// there costs no faults then.
    fn release_vacated(&mut self, first: usize) {
        let Some(dirty) = &mut self.tracking.account else { return };
        let mut at = first;
        while let Some(&start) = self.space.pool.get(at) {
            let mut end = start + BLOCK;
            at += 1;
            while self.space.pool.get(at) == Some(&end) {
                end += BLOCK;
                at += 1;
            }
            dirty.release(Span::between(start, end));
        }
    }

    /// Returns whether dense blocks stay where they are. Not under a limit: a block that stays by a wrong
    /// prediction would leave no room for copies there.
    pub(super) fn stays(&self) -> bool {
        let Config { after_major, limit_bytes, max_bytes, .. } = self.config;
        (after_major, limit_bytes, max_bytes) == (AfterMajor::Stay, usize::MAX, usize::MAX)
    }

    /// The objects to copy: all, or only sparse blocks if dense ones stay.
    pub(super) fn what_to_copy(&self) -> Copying {
        let stays = self.stays();
        Copying {
            all: self.config.restless || !stays,
            dense: if stays { STEP_FULL } else { STEP_DENSE },
            whole_slots: stays,
            beside_new: true,
        }
    }

    /// The setting that holds for vacated blocks here.
    fn after_major(&self) -> AfterMajor {
        match self.config.after_major {
            AfterMajor::Drift if self.config.max_bytes != usize::MAX => AfterMajor::Reuse,
            way => way,
        }
    }

    /// Returns whether a major collection is to be followed by a second pass that copies back.
    pub(super) fn copies_back(&self) -> bool {
        self.config.after_major == AfterMajor::CopyBack
    }
}

impl Appel {
    /// Puts the vacated blocks, which are the pool's from `first` on, where they belong. The world stands
    /// still: room was made before.
    pub(super) fn place_vacated(&mut self, heap: &mut Heap, first: usize) {
        heap.space.pool[first..].sort_unstable();
        heap.release_vacated(first);
        match heap.after_major() {
            AfterMajor::Reuse | AfterMajor::Stay => heap.space.pool[first..].reverse(),
            AfterMajor::CopyBack => heap.space.pool.sort_unstable(),
            AfterMajor::Drift => {
                for index in first..heap.space.pool.len() {
                    let pushed = self.left.push(heap.space.pool[index]);
                    debug_assert!(pushed.is_ok(), "room was made before the world stopped");
                }
                heap.space.pool.truncate(first);
            }
        }
    }

    /// Makes room for the blocks that a major collection will vacate; false if memory for the list is out.
    pub(super) fn prepare_vacated(&mut self, heap: &mut Heap) -> bool {
        let is_ready = heap.config.after_major != AfterMajor::Drift
            || self.left.reserve(heap.space.blocks.len()).is_ok();
        heap.plan_bytes.own = self.taken();
        is_ready
    }

    /// The number of blocks left behind that lie beyond the span; they are the oldest.
    pub(super) fn blocks_to_return_to(&self) -> usize {
        self.left.len().saturating_sub(SPAN * self.old_count)
    }

    /// Drops the first `count` of the blocks left behind: they are in use again.
    pub(super) fn forget_left(&mut self, count: usize) {
        self.left.copy_within(count.., 0);
        let left = self.left.len() - count;
        self.left.truncate(left);
        self.left_told = self.left_told.saturating_sub(count);
    }

    /// Gives back the blocks left behind that lie beyond the span, and reports the newly left ones as
    /// unneeded (section 4.1 of the source). Not while the world is stopped.
    pub(super) fn report_left(&mut self, heap: &Heap) {
        let beyond = self.blocks_to_return_to();
        for &unit in &self.left[..beyond] {
            // These were reported as unneeded: that is taken back first.
            heap.space.source.occupy(unit);
            heap.space.source.give_back(unit);
        }
        self.forget_left(beyond);
        heap.space.source.leave(&self.left[self.left_told..]);
        self.left_told = self.left.len();
    }
}
