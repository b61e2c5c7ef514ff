//! Counters of a garbage collector's activity, of one process or summed over several, and their report lines.

use serde::Serialize;
use std::time::Duration;
use vellum_report::Figure::{Bytes, Count, Many, Nanos};
use vellum_report::table::bar;
use vellum_report::units::{count, many, time};
use vellum_report::{Report, Row, Section, Table};
use vellum_wire::{Counter, PAUSE_BUCKETS, Slot};

/// A collector's counters at one moment. Times are nanoseconds, sizes bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Account {
    pub(crate) collections: u64,
    pub(crate) slices: u64,
    /// The number of partial collections, which traced only new objects.
    pub(crate) partial: u64,
    /// The number of collections in slices that tracked writes by page protection.
    pub(crate) protected: u64,
    /// The number of collections in one pause although slices were requested.
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
    /// The account of several processes: the sums of counters, the maximum of peaks.
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

    pub(crate) fn report(&self) -> Report<'_> {
        let mut report = Report::new(None);
        if self.pauses == 0 && self.heap_bytes == 0 {
            report.section(Section::new(), |section| _ = section.remark("no collector was used".to_owned()));
            return report;
        }
        // The number of collections is shown even if it is 0.
        let work = [
            (true, Many(self.collections, "collection"), ""),
            (self.slices > 0, Many(self.slices, "slice"), ""),
            (self.partial > 0, Count(self.partial), "partial"),
            (self.protected > 0, Count(self.protected), "by page protection"),
            (self.unsliced > 0, Count(self.unsliced), "in one pause and whole: no source reports writes"),
            (true, Bytes(self.allocated_bytes), "allocated"),
            (self.copied_bytes > 0, Bytes(self.copied_bytes), "moved"),
        ];
        let work = work.into_iter().filter(|(is_news, ..)| *is_news);
        let pauses = Row::new("pauses")
            .amount(Nanos(self.pause_ns), format!("in {}", Many(self.pauses, "pause")))
            .figure("longest", Nanos(self.longest_ns))
            .figure("CPU", Nanos(self.pause_cpu_ns))
            .figure("longest", Nanos(self.longest_cpu_ns));
        let phases = Row::new("phases")
            .figure("roots", Nanos(self.root_ns))
            .figure("marking", Nanos(self.mark_ns))
            .figure("finding the dead", Nanos(self.sweep_ns));
        let heap = Row::new("heap")
            .figure("peak", Bytes(self.heap_peak_bytes))
            .figure("last", Bytes(self.heap_bytes))
            .figure("alive", Bytes(self.live_bytes));
        report.section(Section::new(), |section| {
            section.row(work.fold(Row::new("gc"), |row, (_, figure, after)| row.amount(figure, after)));
            section.row(pauses).row(phases).row(heap);
        });
        report.section(Section::titled("pauses by length"), |section| _ = section.table(self.bars()));
        report
    }

    pub(crate) fn line(&self) -> String {
        let nanos = |ns| time(Duration::from_nanos(ns));
        let times = many(self.collections, "collection");
        format!("{times}, paused {}, longest {}", nanos(self.pause_ns), nanos(self.longest_ns))
    }

    /// The histogram of pauses, one row per bucket that is not empty.
    fn bars(&self) -> Table {
        let most = self.histogram.iter().copied().max().unwrap_or(0).max(1);
        let mut table = Table::plain(&["from", "to", "pauses", ""], 0).with_words_last();
        for (bucket, &pauses) in self.histogram.iter().enumerate().filter(|(_, pauses)| **pauses > 0) {
            let bound = |bucket| time(Duration::from_micros(1u64 << bucket));
            let from = if bucket == 0 { "0 µs".to_owned() } else { bound(bucket) };
            let bar = bar(pauses as f64 / most as f64);
            table.row(vec![from, bound(bucket + 1), count(pauses), bar]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_report::Style;

    #[test]
    fn counters_add_up_and_peaks_take_the_maximum() {
        let slots = [Slot::new(), Slot::new()];
        for (slot, ns) in slots.iter().zip([3_000_000, 5_000_000]) {
            slot.add(Counter::GcCollections, 2);
            slot.raise(Counter::PeakGcPauseNs, ns);
            slot.count_pause(ns);
        }
        let account = Account::of(slots.iter());
        assert_eq!((account.collections, account.longest_ns), (4, 5_000_000));
        assert_eq!(account.histogram.iter().sum::<u64>(), 2);
        let bars = account.bars().render("", 80, Style::plain());
        assert!(bars.contains("2.05 ms  4.10 ms") && bars.lines().count() == 3, "{bars}");
    }
}
