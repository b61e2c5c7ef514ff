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
    /// The part of it for scanning stacks and static data.
    pub root_ns_total: u64,
    /// The part of it for tracing.
    pub mark_ns_total: u64,
    /// The part of it for the sweep.
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
    /// Collections that traced new objects only.
    pub partial: u64,
    /// Collections in slices that tracked writes by page protection.
    pub protected: u64,
    /// Collections made at one go for want of write tracking, although slices were set.
    pub unsliced: u64,
    /// Collections that several threads marked.
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
        // SAFETY: every field is a number.
        unsafe { core::mem::zeroed() }
    }

    /// Counts a block that was to be emptied and keeps `live` objects.
    pub(crate) fn note_promoted(&mut self, block: &Block, live: u32) {
        self.promoted_blocks += 1;
        self.promoted_free_bytes += u64::from(block.count.get() - live) * block.size.get() as u64;
    }
}
