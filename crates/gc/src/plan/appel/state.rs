//! The state of the plan `appel` between collections.

use crate::sizing::policy::Major;
use crate::space::block::{Address, Block};
use crate::write_tracking::Which;
use vellum_pages::Buffer;

/// The plan's state between collections.
pub(crate) struct Appel {
    /// Blocks and large objects of the old region: the first of the heap's list.
    pub old_count: usize,
    /// Bytes of objects in the old region, the dead among them that no major collection has found yet.
    pub old_live: usize,
    /// Its size for the sizing policy: with the holes between objects, where blocks stay, as new objects
    /// cannot use them.
    pub old_size: usize,
    /// Old blocks of untyped objects, at most; and of those that have fields.
    pub old_untyped: usize,
    pub old_typed: usize,
    /// When the old region has reached this many bytes, the next collection is a major one.
    pub old_max: usize,
    /// How the last major collection left the heap.
    pub major: Option<Major>,
    /// Writes to old objects have been tracked since the last collection.
    pub is_known: bool,
    /// It should be, and could not be had.
    pub is_refused: bool,
    /// Minor collections since the last major one.
    pub minors: u32,
    /// A minor collection is on.
    pub is_minor: bool,
    /// Fields of old objects that lead to objects which the last minor collection left new.
    pub holders: Buffer<Address>,
    /// Blocks that the minor collection that is on leaves new.
    pub retained: Buffer<Address>,
    /// Bytes of old blocks that are no objects, now and after the last major collection.
    pub waste: usize,
    pub waste_least: usize,
    /// Bytes of objects that the last major collection found alive.
    pub major_live: usize,
    /// Bytes alive in blocks that the next major collection empties, if not all are emptied.
    pub sparse: usize,
    /// The last major collection has left more bytes between objects than in them, as so much is pinned:
    /// threads allocate there.
    pub is_pinned: bool,
    /// It has left as many, but some lie in blocks that it did not know for sparse, and that the next one
    /// empties.
    pub is_loose: bool,
    /// Free blocks that a heap which drifts has left behind, the oldest first.
    pub left: Buffer<Address>,
    /// How many of these were reported as unneeded (`block_source`).
    pub left_told: usize,
}

impl Appel {
    /// A block becomes one of the old region.
    pub(crate) fn adopt(&mut self, block: &Block) {
        block.become_old();
        self.old_untyped += usize::from(Which::OldUntyped.is(block));
        self.old_typed += usize::from(Which::OldTyped.is(block));
    }

    /// Entries that the lists for pinned objects have room for.
    pub(crate) fn room_for_pinned(&self) -> usize {
        self.holders.capacity() + self.retained.capacity()
    }

    /// Bytes the lists take.
    pub(crate) fn taken(&self) -> usize {
        (self.room_for_pinned() + self.left.capacity()) * size_of::<Address>()
    }

    pub(crate) const fn new() -> Appel {
        Appel {
            old_count: 0,
            old_live: 0,
            old_size: 0,
            old_untyped: 0,
            old_typed: 0,
            old_max: 0,
            major: None,
            is_known: false,
            is_refused: false,
            minors: 0,
            is_minor: false,
            holders: Buffer::new(),
            retained: Buffer::new(),
            waste: 0,
            waste_least: 0,
            major_live: 0,
            sparse: 0,
            is_pinned: false,
            is_loose: false,
            left: Buffer::new(),
            left_told: 0,
        }
    }
}
