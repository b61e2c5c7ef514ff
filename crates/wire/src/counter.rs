//! The names of the counters that each process has in its slot of the board (`board`).

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $unit:literal, $words:literal;)*) => {
        /// A counter of a process's slot. Counters count events or bytes since the process attached. Gauges,
        /// whose names begin with `Now`, have the current value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter { $($(#[$doc])* $name),* }

        impl Counter {
            /// Every counter, in slot order.
            pub const ALL: &'static [Counter] = &[$(Counter::$name),*];

            /// The stable name used in JSON (snake case).
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$name => $text),* }
            }

            /// The name in reports for people.
            pub const fn words(self) -> &'static str {
                match self { $(Counter::$name => $words),* }
            }

            /// The unit: `"extents"`, `"bytes"`, `"events"`, ...
            pub const fn unit(self) -> &'static str {
                match self { $(Counter::$name => $unit),* }
            }
        }
    };
}

counters! {
    /// Extents allocated from the page layer.
    ExtentsOut = "extents_out", "extents", "extents handed out";
    /// Bytes of extents allocated.
    BytesOut = "bytes_out", "bytes", "memory handed out";
    /// Extents freed.
    ExtentsIn = "extents_in", "extents", "extents given back";
    /// Bytes of extents freed.
    BytesIn = "bytes_in", "bytes", "memory given back";
    /// Extents served, in whole or in part, from the free-page cache.
    CacheHits = "cache_hits", "extents", "extents from the free-page cache";
    /// Allocated bytes whose frames were already there: each 4096 bytes are a page fault avoided.
    BytesWarm = "bytes_warm", "bytes", "memory that came with its page frames";
    /// Bytes cleared because zeroed memory was requested and the frames were warm.
    BytesCleared = "bytes_cleared", "bytes", "memory cleared for calloc and new mappings";
    /// Blocks grown without moving.
    RegrownBlocks = "regrown_blocks", "blocks", "blocks grown in place";
    /// Bytes added to blocks in place.
    RegrownBytes = "regrown_bytes", "bytes", "memory added in place";
    /// Bytes moved by moving page tables instead of copying.
    BytesRemapped = "bytes_remapped", "bytes", "memory moved by page tables";
    /// Bytes copied when a block had to move.
    BytesCopied = "bytes_copied", "bytes", "memory copied";
    /// Bytes marked discardable (lazily freed): the kernel may take the frames when it needs them.
    BytesDiscarded = "bytes_discarded", "bytes", "memory marked discardable";
    /// Bytes flushed because they were unused for a while.
    FlushedDecay = "flushed_decay_bytes", "bytes", "flushed: not needed for a while";
    /// Bytes flushed so that the cache would not raise the process's peak.
    FlushedPeak = "flushed_peak_bytes", "bytes", "flushed: would have raised the peak";
    /// Bytes flushed or marked because a memory limit or pressure was near.
    FlushedPressure = "flushed_pressure_bytes", "bytes", "flushed: memory was short";
    /// Bytes flushed by request of the program (`malloc_trim`, `munmap`, `MADV_DONTNEED`).
    FlushedAsked = "flushed_asked_bytes", "bytes", "flushed by the program's request (malloc_trim, munmap)";
    /// Bytes whose frames a helper fetched ahead of the program.
    BytesPrefetched = "bytes_prefetched", "bytes", "memory fetched ahead";
    /// Small blocks made available to the front's free lists.
    SmallBlocks = "small_blocks", "blocks", "small blocks made";
    /// Anonymous private mappings of the program served from the page layer.
    MmapServed = "mmap_served", "mappings", "mappings served";
    /// Bytes of those mappings.
    MmapServedBytes = "mmap_served_bytes", "bytes", "memory of these mappings";
    /// Requests answered with out-of-memory.
    OutOfMemory = "out_of_memory", "events", "requests without memory left";
    /// Bytes in use by extents now (small blocks count by their slabs, whole).
    NowLive = "now_live_bytes", "bytes", "in use";
    /// Bytes in the free-page cache now, frames kept and unmarked.
    NowCached = "now_cached_bytes", "bytes", "in the free-page cache";
    /// Bytes marked discardable and not yet reused or flushed.
    NowMarked = "now_marked_bytes", "bytes", "marked discardable";
    /// The highest `NowLive` so far.
    PeakLive = "peak_live_bytes", "bytes", "most in use at any time";
    /// Garbage collections.
    GcCollections = "gc_collections", "collections", "collections";
    /// Slices of collections.
    GcSlices = "gc_slices", "slices", "slices of collections";
    /// Pauses: stops of the program by the collector.
    GcPauses = "gc_pauses", "pauses", "pauses of the program";
    /// Nanoseconds of these pauses.
    GcPauseNs = "gc_pause_ns", "nanoseconds", "time of these pauses";
    /// Nanoseconds of CPU time of the collecting threads in these pauses.
    GcPauseCpuNs = "gc_pause_cpu_ns", "nanoseconds", "CPU time in them";
    /// The longest pause, in nanoseconds.
    PeakGcPauseNs = "peak_gc_pause_ns", "nanoseconds", "longest pause";
    /// The most CPU time in a pause, in nanoseconds.
    PeakGcPauseCpuNs = "peak_gc_pause_cpu_ns", "nanoseconds", "most CPU time in a pause";
    /// Nanoseconds of scanning stacks and static data, in collections that are not sliced.
    GcRootNs = "gc_root_ns", "nanoseconds", "scanning stacks and static data";
    /// Nanoseconds of tracing, slices included.
    GcMarkNs = "gc_mark_ns", "nanoseconds", "tracing";
    /// Nanoseconds of sweeping: finding dead objects.
    GcSweepNs = "gc_sweep_ns", "nanoseconds", "finding what died";
    /// Bytes allocated by the collector's allocator.
    GcAllocated = "gc_allocated_bytes", "bytes", "allocated by the collector";
    /// Bytes of objects that collections moved.
    GcCopied = "gc_copied_bytes", "bytes", "objects moved";
    /// Bytes of the collected heap now: blocks and large objects.
    NowGcHeap = "now_gc_heap_bytes", "bytes", "collected heap";
    /// Bytes of objects that the last collection found alive.
    NowGcLive = "now_gc_live_bytes", "bytes", "alive in it";
    /// The highest `NowGcHeap` so far.
    PeakGcHeap = "peak_gc_heap_bytes", "bytes", "peak of the collected heap";
    /// Partial collections, which traced only objects new since the last collection.
    GcPartial = "gc_partial", "collections", "partial collections";
    /// Sliced collections that found written pages by page protection.
    GcProtected = "gc_protected", "collections", "collections with page protection";
    /// Unsliced collections although slices were requested, because writes could not be tracked.
    GcUnsliced = "gc_unsliced", "collections", "collections that could not be sliced";
    /// Pages that the pager read from its store.
    PagedRead = "paged_in_read", "pages", "paged in: read from the store";
    /// Discardable pages that were evicted without being written.
    PagedDiscarded = "paged_out_discarded", "pages", "paged out: not needed";
    /// Pages written to the store.
    PagedWritten = "paged_out_written", "pages", "paged out: written to the store";
    /// Page frames that the pager's memory objects share, at the highest limit; 0 without a pager.
    PeakPagedFrames = "peak_paged_frames", "pages", "most frames of the pager";
    /// The most pages of memory objects at a time.
    PeakPagedPages = "peak_paged_pages", "pages", "most pages of the pager";
    /// The most pages in memory that cannot be paged; 0 without a pager.
    PeakUnpagedPages = "peak_unpaged_pages", "pages", "most pages that are not paged";
    /// Bytes of blocks in use at the last count; 0 before the first.
    NowInUse = "now_in_use_bytes", "bytes", "in blocks";
    /// Bytes free beside these blocks, in slabs and in threads' own lists.
    NowFreeInSlabs = "now_free_in_slabs_bytes", "bytes", "free in slabs";
    /// Bytes of pages inside slabs whose frames were returned.
    NowReturned = "now_returned_bytes", "bytes", "gone from slabs";
}

impl Counter {
    /// True for a peak. Over several processes the highest peak counts, not the sum.
    pub const fn is_peak(self) -> bool {
        matches!(
            self,
            Counter::PeakLive
                | Counter::PeakGcPauseNs
                | Counter::PeakGcPauseCpuNs
                | Counter::PeakGcHeap
                | Counter::PeakPagedFrames
                | Counter::PeakPagedPages
                | Counter::PeakUnpagedPages
        )
    }
}

/// Buckets of the histogram of collectors' pauses: bucket `i` counts pauses of `2^i` to `2^(i+1) - 1`
/// microseconds. Shorter ones count in the first, longer ones in the last.
pub const PAUSE_BUCKETS: usize = 24;

/// The bucket of a pause of `ns` nanoseconds.
pub const fn pause_bucket(ns: u64) -> usize {
    let us = ns / 1000;
    let log2 = (u64::BITS - 1 - (us | 1).leading_zeros()) as usize;
    if log2 < PAUSE_BUCKETS { log2 } else { PAUSE_BUCKETS - 1 }
}

/// Buckets of the block-size histogram: bucket `i` counts blocks of `2^i` up to `2^(i+1) - 1` bytes.
pub const SIZE_BUCKETS: usize = 48;

/// The bucket of a block of `bytes` bytes (0 counts as 1; beyond the last bucket counts in the last).
#[inline]
pub const fn size_bucket(bytes: usize) -> usize {
    let log2 = (usize::BITS - 1 - (bytes | 1).leading_zeros()) as usize;
    if log2 < SIZE_BUCKETS { log2 } else { SIZE_BUCKETS - 1 }
}

/// The smallest size, in bytes, that falls in `bucket`.
pub const fn size_bucket_floor(bucket: usize) -> u64 {
    1 << bucket
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_two() {
        assert_eq!(size_bucket(0), 0);
        assert_eq!(size_bucket(1), 0);
        assert_eq!(size_bucket(4095), 11);
        assert_eq!(size_bucket(4096), 12);
        assert_eq!(size_bucket(usize::MAX), SIZE_BUCKETS - 1);
        for bucket in 0..SIZE_BUCKETS {
            assert_eq!(size_bucket(size_bucket_floor(bucket) as usize), bucket);
        }
    }

    #[test]
    fn pauses_fall_in_buckets_by_their_microseconds() {
        assert_eq!([0, 1999, 2000, 1_000_000].map(pause_bucket), [0, 0, 1, 9]);
        assert_eq!(pause_bucket(u64::MAX), PAUSE_BUCKETS - 1);
    }

    #[test]
    fn peaks_have_the_prefix_peak() {
        for counter in Counter::ALL {
            assert_eq!(counter.is_peak(), counter.name().starts_with("peak_"), "{}", counter.name());
        }
    }

    #[test]
    fn counter_order_is_slot_order() {
        for (index, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, index);
        }
    }
}
