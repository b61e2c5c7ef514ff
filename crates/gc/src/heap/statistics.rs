//! The counters of a heap, which programs read as `struct vel_gc_stats`.

use crate::space::block::Block;

/// Counters of a heap, in the order of `struct vel_gc_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Collections so far.
    pub collections: u64,
    /// Bytes of blocks and large objects now.
    pub heap_bytes: u64,
    /// The highest value of `heap_bytes` so far.
    pub heap_peak_bytes: u64,
    /// Bytes of objects that the last collection found alive.
    pub live_bytes: u64,
    /// Bytes handed out since the start.
    pub allocated_bytes: u64,
    /// Bytes of descriptors, tables and the part of the mark stack that is kept.
    pub metadata_bytes: u64,
    /// Nanoseconds of the last pause, in which the program's threads were stopped.
    pub pause_ns_last: u64,
    /// Nanoseconds of the longest pause.
    pub pause_ns_longest: u64,
    /// The sum of all pauses.
    pub pause_ns_total: u64,
    /// The part of `pause_ns_total` for scanning stacks and static data.
    pub root_ns_total: u64,
    /// The part of `pause_ns_total` for tracing.
    pub mark_ns_total: u64,
    /// The part of `pause_ns_total` for the sweep.
    pub sweep_ns_total: u64,
    /// Objects that the last collection marked.
    pub marked_objects_last: u64,
    /// Times the mark stack was full.
    pub overflows: u64,
    /// Bytes of objects that were moved.
    pub copied_bytes: u64,
    /// The number of pauses: for whole collections, slices, and the begins and ends of sliced collections.
    pub pauses: u64,
    /// Slices of collections.
    pub slices: u64,
    /// The most CPU time the collecting thread took in a pause, in nanoseconds.
    pub pause_cpu_ns_longest: u64,
    /// The sum of this CPU time over all pauses.
    pub pause_cpu_ns_total: u64,
    /// The CPU time of the last pause.
    pub pause_cpu_ns_last: u64,
    /// Collections that traced new objects only.
    pub partial: u64,
    /// Collections in slices that tracked writes by page protection.
    pub protected: u64,
    /// Collections made at one go for want of write tracking, although slices were set.
    pub unsliced: u64,
    /// Collections that several threads marked.
    pub parallel: u64,
    /// Objects that helper threads marked in such collections.
    pub helped_objects: u64,
    /// Bytes of objects that the program freed itself.
    pub freed_bytes: u64,
    /// Words of registers, stacks and static data that led to an object: the sum over all collections.
    pub roots_found: u64,
    /// Blocks and large objects that these words led into: the sum over all collections.
    pub rooted_blocks: u64,
    /// Blocks that were not emptied, because an object in them was pinned: the sum over all collections.
    pub promoted_blocks: u64,
    /// Bytes of free objects in these blocks afterwards: the next allocations use them.
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
