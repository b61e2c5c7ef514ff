//! What becomes of the blocks that a major collection has vacated.
//!
//! ```text
//!                cold end: copies                             warm end: new objects
//!  REUSE      │ free before ...                         │ vacated, lowest address last │
//!  COPY_BACK  │ by address, lowest first: the second pass copies there, new objects lie above │
//!  DRIFT      │ free before ...                         │          left behind: │ oldest ... newest │
//! ```
//!
//! *Stay* vacates sparse blocks only, and *reuse* all; both put the free region where the old one was a moment ago: its pages are in memory. *Drift* leaves them to be replaced, and copies to
//! memory that was never used or was left longest ago, so that the heap goes through a span of [`SPAN`] times its old region (the source's went through a
//! sparse address space of 4 GiB; here a limit must be). Under a maximum (`max_bytes`) nothing is left behind.
//!
//! Source: Cooper, Nettles and Subramanian 1992, sections 2 (copying back), 3 (drift) and 6 ("if we had placed the free region so as to take
//! advantage of the prepaging of new space").

use crate::class::BLOCK;
use crate::config::{AfterMajor, Config, Plan};
use crate::ground;
use crate::heap::Heap;

/// A heap that drifts leaves so many blocks behind for each of its old region, at most.
const SPAN: usize = 4;

impl Heap {
    /// Puts what a major collection has vacated, the pool from `first` on, where it belongs. The world stands still: room was made before.
    pub(crate) fn place_vacated(&mut self, first: usize) {
        if self.config.plan != Plan::Appel {
            return;
        }
        self.pool[first..].sort_unstable();
        self.release_vacated(first);
        match self.after_major() {
            AfterMajor::Reuse | AfterMajor::Stay => self.pool[first..].reverse(),
            AfterMajor::CopyBack => self.pool.sort_unstable(),
            AfterMajor::Drift => {
                for index in first..self.pool.len() {
                    let pushed = self.appel.left.push(self.pool[index]);
                    debug_assert!(pushed.is_ok(), "room was made before the world stopped");
                }
                self.pool.truncate(first);
            }
        }
    }

    /// Has writing to the blocks of the pool from `first` on, which are in the order of their addresses, cost no faults.
    fn release_vacated(&mut self, first: usize) {
        let Some(dirty) = &mut self.dirty else { return };
        let mut at = first;
        while let Some(&start) = self.pool.get(at) {
            let mut end = start + BLOCK;
            at += 1;
            while self.pool.get(at) == Some(&end) {
                end += BLOCK;
                at += 1;
            }
            dirty.release(start, end);
        }
    }

    /// Whether blocks of which much is alive stay where they are. Not under a limit: what stays by a wrong guess would leave no room for copies there.
    pub(crate) fn stays(&self) -> bool {
        let Config { plan, after_major, limit_bytes, max_bytes, .. } = self.config;
        (plan, after_major, limit_bytes, max_bytes) == (Plan::Appel, AfterMajor::Stay, usize::MAX, usize::MAX)
    }

    /// What becomes of vacated blocks here.
    fn after_major(&self) -> AfterMajor {
        match self.config.after_major {
            AfterMajor::Drift if self.config.max_bytes != usize::MAX => AfterMajor::Reuse,
            way => way,
        }
    }

    /// Makes room for what a major collection will vacate; false if memory for the list is out.
    pub(crate) fn prepare_vacated(&mut self) -> bool {
        self.config.after_major != AfterMajor::Drift || self.appel.left.reserve(self.blocks.len()).is_ok()
    }

    /// Whether a major collection is to be followed by a second pass that copies back.
    pub(crate) fn copies_back(&self) -> bool {
        self.config.plan == Plan::Appel && self.config.after_major == AfterMajor::CopyBack
    }

    /// Of what was left behind, the oldest first, so many blocks are further away than the span.
    pub(crate) fn blocks_to_return_to(&self) -> usize {
        self.appel.left.len().saturating_sub(SPAN * self.appel.old_count)
    }

    /// Forgets the first `count` of what was left behind: they are in use again.
    pub(crate) fn forget_left(&mut self, count: usize) {
        self.appel.left.copy_within(count.., 0);
        let left = self.appel.left.len() - count;
        self.appel.left.truncate(left);
        self.appel.left_told = self.appel.left_told.saturating_sub(count);
    }

    /// Gives back what was left behind so long ago that it is beyond the span, and says of what was left last that nobody needs it (section
    /// 4.1 of the source). Not while the world is stopped.
    pub(crate) fn tell_left(&mut self) {
        let beyond = self.blocks_to_return_to();
        for &unit in &self.appel.left[..beyond] {
            // What has been told of is no longer to be told of by then.
            ground::occupy(unit);
            ground::give_back(unit);
        }
        self.forget_left(beyond);
        ground::leave(&self.appel.left[self.appel.left_told..]);
        self.appel.left_told = self.appel.left.len();
    }
}
