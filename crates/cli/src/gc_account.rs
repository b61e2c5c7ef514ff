//! What a collector did, as reports tell it: counters of a process or of several, and lines about them.

use serde::Serialize;
use std::time::Duration;
use vellum_report::units::{bytes, count, many, time};
use vellum_wire::{Counter, PAUSE_BUCKETS, Slot};

/// A collector's counters at one moment. Times are nanoseconds, sizes bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Account {
    pub(crate) collections: u64,
    pub(crate) slices: u64,
    /// Of the collections: those that followed only what was new.
    pub(crate) partial: u64,
    /// Those in slices whose account of writes was kept by page protection.
    pub(crate) protected: u64,
    /// Those that were made at one go although slices were asked for.
    pub(crate) unsliced: u64,
    pub(crate) pauses: u64,
    pub(crate) pause_ns: u64,
    pub(crate) pause_cpu_ns: u64,
    pub(crate) longest_ns: u64,
    pub(crate) longest_cpu_ns: u64,
    pub(crate) root_ns: u64,
    pub(crate) mark_ns: u64,
    pub(crate) sweep_ns: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) copied_bytes: u64,
    pub(crate) heap_bytes: u64,
    pub(crate) heap_peak_bytes: u64,
    pub(crate) live_bytes: u64,
    /// Pauses by length: the `i`th of `2^i` up to `2^(i+1) - 1` microseconds.
    pub(crate) histogram: Vec<u64>,
}

impl Account {
    /// Of several processes: sums, and the highest of what are peaks.
    pub(crate) fn of<'s>(slots: impl Iterator<Item = &'s Slot> + Clone) -> Account {
        let get = |counter: Counter| {
            let values = slots.clone().map(|slot| slot.get(counter));
            if counter.is_peak() { values.max().unwrap_or(0) } else { values.sum() }
        };
        Account {
            collections: get(Counter::GcCollections),
            slices: get(Counter::GcSlices),
            partial: get(Counter::GcPartial),
            protected: get(Counter::GcProtected),
            unsliced: get(Counter::GcUnsliced),
            pauses: get(Counter::GcPauses),
            pause_ns: get(Counter::GcPauseNs),
            pause_cpu_ns: get(Counter::GcPauseCpuNs),
            longest_ns: get(Counter::PeakGcPauseNs),
            longest_cpu_ns: get(Counter::PeakGcPauseCpuNs),
            root_ns: get(Counter::GcRootNs),
            mark_ns: get(Counter::GcMarkNs),
            sweep_ns: get(Counter::GcSweepNs),
            allocated_bytes: get(Counter::GcAllocated),
            copied_bytes: get(Counter::GcCopied),
            heap_bytes: get(Counter::NowGcHeap),
            heap_peak_bytes: get(Counter::PeakGcHeap),
            live_bytes: get(Counter::NowGcLive),
            histogram: (0..PAUSE_BUCKETS)
                .map(|bucket| slots.clone().map(|slot| slot.pause_count(bucket)).sum())
                .collect(),
        }
    }

    /// The summary: labelled lines of cells.
    pub(crate) fn lines(&self) -> Vec<(&'static str, Vec<String>)> {
        let nanos = |ns| time(Duration::from_nanos(ns));
        let mut work = vec![many(self.collections, "collection")];
        if self.slices > 0 {
            work.push(many(self.slices, "slice"));
        }
        if self.partial > 0 {
            work.push(format!("{} partial", count(self.partial)));
        }
        if self.protected > 0 {
            work.push(format!("{} by page protection", count(self.protected)));
        }
        if self.unsliced > 0 {
            work.push(format!(
                "{} at one go and whole, as nothing tells what is written",
                count(self.unsliced)
            ));
        }
        work.push(format!("{} allocated", bytes(self.allocated_bytes)));
        if self.copied_bytes > 0 {
            work.push(format!("{} moved", bytes(self.copied_bytes)));
        }
        let pauses = vec![
            format!("{} in {}", nanos(self.pause_ns), many(self.pauses, "pause")),
            format!("longest {}", nanos(self.longest_ns)),
            format!("CPU {}, longest {}", nanos(self.pause_cpu_ns), nanos(self.longest_cpu_ns)),
        ];
        let phases = vec![
            format!("roots {}", nanos(self.root_ns)),
            format!("marking {}", nanos(self.mark_ns)),
            format!("finding the dead {}", nanos(self.sweep_ns)),
        ];
        let heap = vec![
            format!("peak {}", bytes(self.heap_peak_bytes)),
            format!("last {}", bytes(self.heap_bytes)),
            format!("alive {}", bytes(self.live_bytes)),
        ];
        vec![("gc", work), ("pauses", pauses), ("phases", phases), ("heap", heap)]
    }

    pub(crate) fn line(&self) -> String {
        let nanos = |ns| time(Duration::from_nanos(ns));
        let times = many(self.collections, "collection");
        format!("{times}, paused {}, longest {}", nanos(self.pause_ns), nanos(self.longest_ns))
    }

    /// The histogram of pauses, a line a bucket that has any.
    pub(crate) fn bars(&self) -> String {
        const BAR: u64 = 40;
        let most = self.histogram.iter().copied().max().unwrap_or(0).max(1);
        let mut text = String::new();
        for (bucket, &pauses) in self.histogram.iter().enumerate().filter(|(_, pauses)| **pauses > 0) {
            let bound = |bucket| time(Duration::from_micros(1u64 << bucket));
            let from = if bucket == 0 { "0 µs".to_owned() } else { bound(bucket) };
            let bar = "#".repeat((pauses * BAR).div_ceil(most) as usize);
            text += &format!("  {from:>9} to {:<9} {:>9}  {bar}\n", bound(bucket + 1), count(pauses));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_and_peaks_do_not() {
        let slots = [Slot::new(), Slot::new()];
        for (slot, ns) in slots.iter().zip([3_000_000, 5_000_000]) {
            slot.add(Counter::GcCollections, 2);
            slot.raise(Counter::PeakGcPauseNs, ns);
            slot.count_pause(ns);
        }
        let account = Account::of(slots.iter());
        assert_eq!((account.collections, account.longest_ns), (4, 5_000_000));
        assert_eq!(account.histogram.iter().sum::<u64>(), 2);
        let bars = account.bars();
        assert!(bars.contains("2.05 ms to 4.10 ms") && bars.lines().count() == 2, "{bars}");
    }
}
