//! Publishes the collector's counters for `vellum gc-stat`, `run` and `cost`, on the board: shared memory in
//! which each process has a slot.
//!
//! Each call adds the difference since the last call. A forked child has another slot, and publishes only
//! the work it has done since the fork.

use crate::heap::Heap;
use crate::heap::statistics::Stats;
use vellum_pages::Pages;
use vellum_wire::Counter;

impl Heap {
    /// The counters, with the heap's present size.
    pub(crate) fn stats_now(&self) -> Stats {
        Stats {
            heap_bytes: self.space.bytes as u64,
            metadata_bytes: self.metadata_bytes() as u64,
            ..self.stats
        }
    }

    /// Publishes the changes since the last time.
    pub(crate) fn publish(&mut self) {
        let (slot, now) = (Pages::global().slot(), self.stats);
        let told = core::mem::replace(&mut self.told, now);
        for (counter, now, before) in [
            (Counter::GcCollections, now.collections, told.collections),
            (Counter::GcSlices, now.slices, told.slices),
            (Counter::GcPauses, now.pauses, told.pauses),
            (Counter::GcPauseNs, now.pause_ns_total, told.pause_ns_total),
            (Counter::GcPauseCpuNs, now.pause_cpu_ns_total, told.pause_cpu_ns_total),
            (Counter::GcRootNs, now.root_ns_total, told.root_ns_total),
            (Counter::GcMarkNs, now.mark_ns_total, told.mark_ns_total),
            (Counter::GcSweepNs, now.sweep_ns_total, told.sweep_ns_total),
            (Counter::GcAllocated, now.allocated_bytes, told.allocated_bytes),
            (Counter::GcCopied, now.copied_bytes, told.copied_bytes),
            (Counter::GcPartial, now.partial, told.partial),
            (Counter::GcProtected, now.protected, told.protected),
            (Counter::GcUnsliced, now.unsliced, told.unsliced),
        ] {
            slot.add(counter, now - before);
        }
        if now.pauses > told.pauses {
            slot.count_pause(now.pause_ns_last);
            slot.raise(Counter::PeakGcPauseNs, now.pause_ns_last);
            slot.raise(Counter::PeakGcPauseCpuNs, now.pause_cpu_ns_last);
        }
        slot.set(Counter::NowGcHeap, self.space.bytes as u64);
        slot.set(Counter::NowGcLive, now.live_bytes);
        slot.raise(Counter::PeakGcHeap, now.heap_peak_bytes);
    }

    /// Publishes the heap's growth, so that a heap is seen before its first collection.
    pub(crate) fn publish_growth(&mut self) {
        let slot = Pages::global().slot();
        let allocated = core::mem::replace(&mut self.told.allocated_bytes, self.stats.allocated_bytes);
        slot.add(Counter::GcAllocated, self.stats.allocated_bytes - allocated);
        slot.set(Counter::NowGcHeap, self.space.bytes as u64);
        slot.raise(Counter::PeakGcHeap, self.stats.heap_peak_bytes);
    }

    /// A forked child publishes its own work only.
    pub(crate) fn publish_anew(&mut self) {
        self.told = self.stats;
    }
}
