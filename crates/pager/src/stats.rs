//! The pager's counters: the rows of the tables in Cooper, Nettles and Subramanian 1992 (Figures 13 to 24)
//! that can be counted here.
//!
//! A page that is evicted is *discarded* (nobody needs it) or *written* (it has changed since it was last
//! written). A page is *read* if a scan finds it in memory, the scan before did not, and the store had
//! contents for it. No page can come and go between two scans, as only the evicting thread drops pages,
//! after a scan. Pages that the kernel takes when memory is short are an exception.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_wire::{Counter, Slot};

/// Pages that were moved, since the pager was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages read from the store.
    pub read: u64,
    /// Discardable pages that left memory, unwritten.
    pub discarded: u64,
    /// Pages written to the store.
    pub written: u64,
}

#[derive(Debug)]
pub(crate) struct Stats {
    pub(crate) read: AtomicU64,
    pub(crate) discarded: AtomicU64,
    pub(crate) written: AtomicU64,
}

/// Adds to a count that no other thread changes.
pub(crate) fn add(count: &AtomicU64, pages: u32) {
    count.store(count.load(Relaxed) + u64::from(pages), Relaxed);
}

impl Stats {
    pub(crate) const fn new() -> Stats {
        Stats { read: AtomicU64::new(0), discarded: AtomicU64::new(0), written: AtomicU64::new(0) }
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            read: self.read.load(Relaxed),
            discarded: self.discarded.load(Relaxed),
            written: self.written.load(Relaxed),
        }
    }

    pub(crate) fn publish(&self, slot: &Slot) {
        let Counts { read, discarded, written } = self.counts();
        slot.set(Counter::PagedRead, read);
        slot.set(Counter::PagedDiscarded, discarded);
        slot.set(Counter::PagedWritten, written);
    }
}
