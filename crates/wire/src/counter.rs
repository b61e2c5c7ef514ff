//! The counters of a slot, by name.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $unit:literal, $words:literal;)*) => {
        /// One counter of a process's slot. All count events or bytes since the process attached, except the
        /// gauges, whose names begin with `Now`.
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
    /// Extents handed out by the page layer.
    ExtentsOut = "extents_out", "extents", "extents handed out";
    /// Bytes of extents handed out.
    BytesOut = "bytes_out", "bytes", "memory handed out";
    /// Extents given back.
    ExtentsIn = "extents_in", "extents", "extents given back";
    /// Bytes of extents given back.
    BytesIn = "bytes_in", "bytes", "memory given back";
    /// Extents served, in whole or in part, from the free-page cache.
    CacheHits = "cache_hits", "extents", "extents from the free-page cache";
    /// Bytes handed out whose frames were already there: each 4096 of them is a page fault avoided.
    BytesWarm = "bytes_warm", "bytes", "memory that came with its page frames";
    /// Bytes that had to be cleared because zeroed memory was asked for and the frames were warm.
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
    /// Bytes flushed because they were not needed for a while.
    FlushedDecay = "flushed_decay_bytes", "bytes", "flushed: not needed for a while";
    /// Bytes flushed so that the cache would not raise the process's peak.
    FlushedPeak = "flushed_peak_bytes", "bytes", "flushed: would have raised the peak";
    /// Bytes flushed or marked because a memory limit or pressure was near.
    FlushedPressure = "flushed_pressure_bytes", "bytes", "flushed: memory was short";
    /// Bytes flushed because the program asked (`malloc_trim`, `munmap`, `MADV_DONTNEED`).
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
    /// Times the collector had the program stand still.
    GcPauses = "gc_pauses", "pauses", "pauses of the program";
    /// Nanoseconds of these.
    GcPauseNs = "gc_pause_ns", "nanoseconds", "time of these pauses";
    /// Nanoseconds of CPU time that the collecting threads took in them.
    GcPauseCpuNs = "gc_pause_cpu_ns", "nanoseconds", "CPU time in them";
    /// The longest of them.
    PeakGcPauseNs = "peak_gc_pause_ns", "nanoseconds", "longest pause";
    /// The most CPU time in one of them.
    PeakGcPauseCpuNs = "peak_gc_pause_cpu_ns", "nanoseconds", "most CPU time in a pause";
    /// Nanoseconds of collections at one go that were spent on stacks and static data.
    GcRootNs = "gc_root_ns", "nanoseconds", "scanning stacks and static data";
    /// Nanoseconds of tracing, slices included.
    GcMarkNs = "gc_mark_ns", "nanoseconds", "tracing";
    /// Nanoseconds of finding what died.
    GcSweepNs = "gc_sweep_ns", "nanoseconds", "finding what died";
    /// Bytes handed out by the collector's allocator.
    GcAllocated = "gc_allocated_bytes", "bytes", "allocated by the collector";
    /// Bytes of objects that collections moved.
    GcCopied = "gc_copied_bytes", "bytes", "objects moved";
    /// Bytes of the collected heap now: blocks and large objects.
    NowGcHeap = "now_gc_heap_bytes", "bytes", "collected heap";
    /// Bytes of objects that the last collection found alive.
    NowGcLive = "now_gc_live_bytes", "bytes", "alive in it";
    /// The highest `NowGcHeap` so far.
    PeakGcHeap = "peak_gc_heap_bytes", "bytes", "peak of the collected heap";
    /// Collections that followed only what was new since the one before.
    GcPartial = "gc_partial", "collections", "partial collections";
    /// Collections in slices for which written pages were found out by page protection.
    GcProtected = "gc_protected", "collections", "collections with page protection";
    /// Collections made at one go although slices were asked for, as nobody told what is written.
    GcUnsliced = "gc_unsliced", "collections", "collections that could not be sliced";
    /// Pages that the pager read from its store.
    PagedRead = "paged_in_read", "pages", "paged in: read from the store";
    /// Discardable pages that left memory and were not written.
    PagedDiscarded = "paged_out_discarded", "pages", "paged out: not needed";
    /// Pages written to the store.
    PagedWritten = "paged_out_written", "pages", "paged out: written to the store";
    /// Page frames that the pager's memory objects share, as many as limits allow; 0 without a pager.
    PeakPagedFrames = "peak_paged_frames", "pages", "most frames of the pager";
    /// The most pages of memory objects at a time.
    PeakPagedPages = "peak_paged_pages", "pages", "most pages of the pager";
    /// The most pages in memory that cannot be paged; 0 without a pager.
    PeakUnpagedPages = "peak_unpaged_pages", "pages", "most pages that are not paged";
    /// Bytes of blocks in use when blocks were counted last; 0 before the first time.
    NowInUse = "now_in_use_bytes", "bytes", "in blocks";
    /// Bytes free beside them, in slabs and in threads' own lists.
    NowFreeInSlabs = "now_free_in_slabs_bytes", "bytes", "free in slabs";
    /// Bytes of pages inside slabs whose frames have gone back.
    NowReturned = "now_returned_bytes", "bytes", "gone from slabs";
}

impl Counter {
    /// Whether it is the highest value of something: over several processes the highest counts, not the sum.
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

/// Buckets of the histogram of collectors' pauses: bucket `i` counts those of `2^i` up to `2^(i+1) - 1`
/// microseconds (shorter ones in the first, longer ones in the last).
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
    fn peaks_are_named_so() {
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
