//! The counters: what of the source's tables (Figures 13 to 24) can be seen where the kernel answers faults.
//!
//! A page that leaves is *discarded* (nobody needs it) or *written*, if it has changed since it was last
//! written. A page that is in memory at one look, and was not at the look before though the store had
//! contents for it, was *read*. Between two scans no page can come and go: only the evicting thread drops
//! pages, after a scan, apart from those that the kernel takes when memory is short.

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
