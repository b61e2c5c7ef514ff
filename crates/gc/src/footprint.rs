//! What the collector takes beside blocks and large objects, and the limit on all of it together.
//!
//! ```text
//! max   |------ blocks, large objects, free blocks ------|-- kept back --|-- metadata --|
//!                                                         tables, threads and types may grow into it
//! ```
//!
//! `limit_bytes` is a limit on blocks and large objects; `max_bytes` one on these and everything that the collector keeps to
//! manage them: what a user who has so many megabytes and no more means. A part of it is kept back from blocks, so that a heap
//! which is full, as heaps are between collections, still has room for a finalizer, a thread or a type.
//!
//! # Invariants
//! * Everything is counted by what was taken for it, used or not; lists that a collection needs by what it may need.
//! * Blocks, large objects, free blocks and metadata together are at most `max_bytes`, also while a collection runs.
//!
//! # Not counted
//! The kernel's page tables; freed pages that the page layer keeps for the process, which are under its own rule (they never raise the process's
//! peak by more than a sixty-fourth, or 2 MiB); the cards of `tells_writes` (a byte a page of heap) and lists of written ranges
//! while a cycle in slices is on.

use crate::block::{BITMAPS, BITMAPS_MAX, PAIRS_MAX, descriptor_bytes};
use crate::class::BLOCK;
use crate::config::{STACK_KEPT, STACK_WORDS};
use crate::ground;
use crate::heap::Heap;
use crate::{parallel, thread};
use vellum_pages::{Buffer, PAGE, Plain, UNIT, UNIT_SIDE};

/// The part of a maximum that blocks do not take: one thirty-second, at least [`KEPT_LEAST`].
const KEPT_PART: usize = 32;
/// A unit of descriptors, a part of the address table, and a few pages.
const KEPT_LEAST: usize = 3 * UNIT;
/// The part of a maximum that the mark stack may take: one sixty-fourth, at least [`STACK_LEAST`].
const STACK_PART: usize = 64;
const STACK_LEAST: usize = 64 << 10;
/// Lists of blocks that a collection may need: free blocks, dead large objects, room for copies, blocks that were copied to.
const LISTS: usize = 4;
/// Bytes of a page's record in the page layer.
const PAGE_RECORD: usize = 16;

/// Bytes taken for a buffer.
fn taken<T: Plain>(buffer: &Buffer<T>) -> usize {
    buffer.capacity() * size_of::<T>()
}

impl Heap {
    /// Bytes of memory that the collector takes beside blocks and large objects.
    pub(crate) fn metadata_bytes(&self) -> usize {
        let lists = taken(&self.pool) + taken(&self.doomed) + self.copies.taken();
        let lists = lists.max(self.blocks.len() * LISTS * size_of::<usize>());
        let tables = self.finalizers.bytes()
            + self.disclaimers.bytes()
            + self.links.bytes()
            + self.kept.bytes()
            + self.ephemerons.bytes();
        let units = (self.bytes + self.pool.len() * BLOCK).div_ceil(UNIT);
        size_of::<Heap>()
            + self.stack_bytes()
            + self.descriptors.bytes()
            + self.space.table_bytes()
            + taken(&self.slots)
            + taken(&self.copies.runs)
            + taken(&self.blocks)
            + lists
            + taken(&self.freed)
            + self.appel.taken()
            + tables
            + self.layout_room.taken
            + self.roots.bytes()
            + thread::records_bytes()
            + parallel::taken_bytes(self.bytes)
            + units * (UNIT_SIDE + UNIT / PAGE * PAGE_RECORD)
    }

    /// Gives back what tables have grown to and do not need any more. Under a maximum they stay: there are two of a table for a moment.
    pub(crate) fn shrink_tables(&mut self) {
        if self.config.max_bytes == usize::MAX {
            self.finalizers.shrink();
            self.disclaimers.shrink();
            self.links.shrink();
            self.kept.shrink();
            self.ephemerons.shrink();
        }
    }

    /// Bytes of the mark stack: all of it where there is a maximum, else what stays between collections.
    fn stack_bytes(&self) -> usize {
        if self.config.max_bytes == usize::MAX { STACK_KEPT } else { self.stack.room * size_of::<usize>() }
    }

    /// Bytes that blocks and large objects may take now.
    #[inline]
    pub(crate) fn limit(&self) -> usize {
        match self.config.max_bytes {
            usize::MAX => self.config.limit_bytes,
            max => self.config.limit_bytes.min(self.below(max)),
        }
    }

    #[cold]
    fn below(&self, max: usize) -> usize {
        let kept = (max / KEPT_PART).max(KEPT_LEAST);
        max.saturating_sub(self.metadata_bytes() + kept)
    }

    /// Blocks that may be taken for copies, with their descriptors.
    pub(crate) fn headroom_blocks(&self) -> usize {
        let bitmaps = if self.config.plan.moves() { BITMAPS_MAX } else { BITMAPS };
        let descriptor = match self.config.max_bytes {
            usize::MAX => 0,
            _ => descriptor_bytes(PAIRS_MAX as u32, bitmaps),
        };
        self.limit().saturating_sub(self.bytes) / (BLOCK + descriptor)
    }

    /// Sees to it that `more` bytes of metadata may be taken under the maximum, giving free blocks back for it; false if they may not.
    pub(crate) fn may_take(&mut self, more: usize) -> bool {
        let max = self.config.max_bytes;
        if max == usize::MAX {
            return true;
        }
        loop {
            let total = self.bytes + self.pool.len() * BLOCK + self.metadata_bytes();
            if total.checked_add(more).is_some_and(|total| total <= max) {
                return true;
            }
            let Some(&unit) = self.pool.last() else { return false };
            self.pool.truncate(self.pool.len() - 1);
            ground::give_back(unit);
        }
    }

    /// Sets the maximum, between collections. What is taken already is not touched: it is what the next collection has to go by.
    pub(crate) fn set_max(&mut self, bytes: usize) {
        // What waits on the mark stack may be more than is left of it.
        self.drop_cycle();
        self.config.max_bytes = bytes;
        let stack = match bytes {
            usize::MAX => usize::MAX,
            max => (max / STACK_PART).max(STACK_LEAST),
        };
        self.stack.room = (stack / size_of::<usize>()).min(STACK_WORDS);
        self.note_limits();
    }

    /// Notes what the heap must keep to from now on: its limits, or what it is already.
    pub(crate) fn note_limits(&mut self) {
        self.keeps_to = self.config.limit_bytes.max(self.bytes);
        let total = self.bytes + self.pool.len() * BLOCK + self.metadata_bytes();
        self.keeps_all_to = self.config.max_bytes.max(total);
    }

    /// Checks that the heap keeps to its limits.
    ///
    /// # Errors
    /// Names the one that is broken.
    pub(crate) fn check_limits(&self) -> Result<(), &'static str> {
        if self.bytes > self.keeps_to {
            return Err("the heap keeps to its limit");
        }
        let total = self.bytes + self.pool.len() * BLOCK + self.metadata_bytes();
        if total > self.keeps_all_to {
            return Err("the heap and its metadata keep to their maximum");
        }
        Ok(())
    }
}

const _: () = assert!(STACK_LEAST <= STACK_WORDS * size_of::<usize>());
