//! Counters of a heap.

use crate::space::block::Block;

/// Counters of a heap, in the order of `struct vel_gc_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Collections so far.
    pub collections: u64,
    /// Bytes of blocks and large objects now.
    pub heap_bytes: u64,
    /// The most they were.
    pub heap_peak_bytes: u64,
    /// Bytes of objects that the last collection found alive.
    pub live_bytes: u64,
    /// Bytes handed out since the start.
    pub allocated_bytes: u64,
    /// Bytes of descriptors, tables and the part of the mark stack that is kept.
    pub metadata_bytes: u64,
    /// Nanoseconds for which the world stood still, the last time.
    pub pause_ns_last: u64,
    /// The longest of these.
    pub pause_ns_longest: u64,
    /// Their sum.
    pub pause_ns_total: u64,
    /// Of which: scanning stacks and static data.
    pub root_ns_total: u64,
    /// Of which: tracing.
    pub mark_ns_total: u64,
    /// Of which: the sweep.
    pub sweep_ns_total: u64,
    /// Objects that the last collection marked.
    pub marked_objects_last: u64,
    /// Times the mark stack was full.
    pub overflows: u64,
    /// Bytes of objects that were moved.
    pub copied_bytes: u64,
    /// Times the world stood still: collections at one go, slices, beginnings and ends.
    pub pauses: u64,
    /// Slices of collections.
    pub slices: u64,
    /// The most CPU time the collecting thread took in a pause, in nanoseconds.
    pub pause_cpu_ns_longest: u64,
    /// The sum of these.
    pub pause_cpu_ns_total: u64,
    /// The last of these.
    pub pause_cpu_ns_last: u64,
    /// Of the collections: those that traced only objects that were new since the one before.
    pub partial: u64,
    /// Those in slices whose writes were tracked by page protection.
    pub protected: u64,
    /// Those that were made at one go, although slices were wanted, as writes could not be tracked.
    pub unsliced: u64,
    /// Those that several threads marked at once.
    pub parallel: u64,
    /// Objects that helper threads marked in these.
    pub helped_objects: u64,
    /// Bytes of objects that their users freed.
    pub freed_bytes: u64,
    /// Words of registers, stacks and static data that led to an object: the sum over all collections.
    pub roots_found: u64,
    /// Blocks and large objects that they led into, likewise.
    pub rooted_blocks: u64,
    /// Blocks that were to be emptied and were not, as something in them was pinned, likewise.
    pub promoted_blocks: u64,
    /// Bytes of free objects in these afterwards: the next allocations use them.
    pub promoted_free_bytes: u64,
}

impl Stats {
    pub(crate) const fn new() -> Stats {
        Stats {
            collections: 0,
            heap_bytes: 0,
            heap_peak_bytes: 0,
            live_bytes: 0,
            allocated_bytes: 0,
            metadata_bytes: 0,
            pause_ns_last: 0,
            pause_ns_longest: 0,
            pause_ns_total: 0,
            root_ns_total: 0,
            mark_ns_total: 0,
            sweep_ns_total: 0,
            marked_objects_last: 0,
            overflows: 0,
            copied_bytes: 0,
            pauses: 0,
            slices: 0,
            pause_cpu_ns_longest: 0,
            pause_cpu_ns_total: 0,
            pause_cpu_ns_last: 0,
            partial: 0,
            protected: 0,
            unsliced: 0,
            parallel: 0,
            helped_objects: 0,
            freed_bytes: 0,
            roots_found: 0,
            rooted_blocks: 0,
            promoted_blocks: 0,
            promoted_free_bytes: 0,
        }
    }

    /// Counts a block that was to be emptied and keeps `live` objects.
    pub(crate) fn note_promoted(&mut self, block: &Block, live: u32) {
        self.promoted_blocks += 1;
        self.promoted_free_bytes += u64::from(block.count.get() - live) * block.size.get() as u64;
    }
}
