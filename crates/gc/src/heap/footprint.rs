//! Counts the collector's metadata (all its memory other than blocks and large objects), and limits blocks,
//! large objects and metadata together.
//!
//! ```text
//! max   |------ blocks, large objects, free blocks ------|-- kept back --|-- metadata --|
//!                                                         tables, threads and types may grow into it
//! ```
//!
//! `limit_bytes` limits blocks and large objects; `max_bytes` limits these and everything that the collector
//! keeps to manage them. `max_bytes` is for a user who has a fixed number of megabytes. Blocks cannot use
//! all of `max_bytes`: the part kept back leaves a full heap room for a finalizer, a thread or a type.
//!
//! # Invariants
//! * Memory counts from its allocation, used or not. A collection's lists count with their greatest
//!   length.
//! * Blocks, large objects, free blocks and metadata together never exceed `max_bytes`.
//!
//! # Not counted
//! * The kernel's page tables.
//! * Freed pages that the page layer keeps for the process. They raise the process's peak of resident memory
//!   by a sixty-fourth at most, or by 2 MiB if that is more.
//! * The cards (a byte for each page, set by programs that report writes: `tells_writes`), and lists of
//!   written ranges during a collection in slices.

use crate::config::{STACK_KEPT, STACK_WORDS};
use crate::heap::Heap;
use crate::space::block::{BITMAPS, BITMAPS_MAX, PAIRS_MAX, descriptor_bytes};
use crate::space::size_class::BLOCK;
use crate::trace::parallel;
use vellum_pages::{Buffer, PAGE, Plain, UNIT, UNIT_SIDE};

/// The part of a maximum that blocks do not take: one thirty-second, at least [`KEPT_LEAST`].
const KEPT_PART: usize = 32;
/// A unit of descriptors, a part of the address table, and a few pages.
const KEPT_LEAST: usize = 3 * UNIT;
/// The part of a maximum that the mark stack may take: one sixty-fourth, at least [`STACK_LEAST`].
const STACK_PART: usize = 64;
const STACK_LEAST: usize = 64 << 10;
/// Lists of blocks in a collection: free blocks, dead large objects, room for copies, targets of copies.
const LISTS: usize = 4;
/// Bytes of a page's record in the page layer.
const PAGE_RECORD: usize = 16;

fn taken<T: Plain>(buffer: &Buffer<T>) -> usize {
    buffer.capacity() * size_of::<T>()
}

impl Heap {
    /// Bytes of memory that the collector takes beside blocks and large objects.
    pub(crate) fn metadata_bytes(&self) -> usize {
        let lists = taken(&self.space.pool) + taken(&self.space.doomed) + self.plan_bytes.lists;
        let lists = lists.max(self.space.blocks.len() * LISTS * size_of::<usize>());
        let tables = self.deaths.finalizers.bytes()
            + self.deaths.disclaimers.bytes()
            + self.deaths.links.bytes()
            + self.deaths.kept.bytes()
            + self.deaths.ephemerons.bytes()
            + self.deaths.samples.bytes();
        let units = (self.space.bytes + self.space.pool.len() * BLOCK).div_ceil(UNIT);
        size_of::<Heap>()
            + self.stack_bytes()
            + self.space.descriptors.bytes()
            + self.space.table.table_bytes()
            + taken(&self.space.slots)
            + self.plan_bytes.runs
            + taken(&self.space.blocks)
            + lists
            + taken(&self.deaths.freed)
            + self.plan_bytes.own
            + tables
            + self.space.layout_room.taken
            + self.roots.bytes()
            + self.shared.world.records_bytes()
            + parallel::taken_bytes(self.space.bytes)
            + units * (UNIT_SIDE + UNIT / PAGE * PAGE_RECORD)
    }

    /// Gives back the room that tables have grown to and no longer need. Does nothing under a maximum: while
    /// a table shrinks, its old and new places exist side by side.
    pub(crate) fn shrink_tables(&mut self) {
        if self.config.max_bytes == usize::MAX {
            self.deaths.finalizers.shrink();
            self.deaths.disclaimers.shrink();
            self.deaths.links.shrink();
            self.deaths.kept.shrink();
            self.deaths.ephemerons.shrink();
            self.deaths.samples.shrink();
        }
    }

    /// Bytes of the mark stack: all of it under a maximum, else the part that stays between collections.
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
        let bitmaps = if self.moves { BITMAPS_MAX } else { BITMAPS };
        let descriptor = match self.config.max_bytes {
            usize::MAX => 0,
            _ => descriptor_bytes(PAIRS_MAX as u32, bitmaps),
        };
        self.limit().saturating_sub(self.space.bytes) / (BLOCK + descriptor)
    }

    /// Returns whether `more` bytes of metadata may be taken under the maximum; free blocks are given back to
    /// make room for them.
    pub(crate) fn may_take(&mut self, more: usize) -> bool {
        let max = self.config.max_bytes;
        if max == usize::MAX {
            return true;
        }
        loop {
            let total = self.space.bytes + self.space.pool.len() * BLOCK + self.metadata_bytes();
            if total.checked_add(more).is_some_and(|total| total <= max) {
                return true;
            }
            let Some(&unit) = self.space.pool.last() else { return false };
            self.space.pool.truncate(self.space.pool.len() - 1);
            self.space.source.give_back(unit);
        }
    }

    /// Sets the maximum, between collections: no cycle is under way. Memory that is taken already stays: the
    /// next collection takes the maximum into account.
    pub(crate) fn set_max(&mut self, bytes: usize) {
        self.config.max_bytes = bytes;
        let stack = match bytes {
            usize::MAX => usize::MAX,
            max => (max / STACK_PART).max(STACK_LEAST),
        };
        self.stack.room = (stack / size_of::<usize>()).min(STACK_WORDS);
        self.note_limits();
    }

    /// Records what the heap must keep to from now on: its limits, or its size if that is larger.
    pub(crate) fn note_limits(&mut self) {
        self.sizing.keeps_to = self.config.limit_bytes.max(self.space.bytes);
        let total = self.space.bytes + self.space.pool.len() * BLOCK + self.metadata_bytes();
        self.sizing.keeps_all_to = self.config.max_bytes.max(total);
    }

    /// Checks that the heap keeps to its limits.
    ///
    /// # Errors
    /// The broken limit.
    pub(crate) fn check_limits(&self) -> Result<(), &'static str> {
        if self.space.bytes > self.sizing.keeps_to {
            return Err("the heap keeps to its limit");
        }
        let total = self.space.bytes + self.space.pool.len() * BLOCK + self.metadata_bytes();
        if total > self.sizing.keeps_all_to {
            return Err("the heap and its metadata keep to their maximum");
        }
        Ok(())
    }
}

const _: () = assert!(STACK_LEAST <= STACK_WORDS * size_of::<usize>());
