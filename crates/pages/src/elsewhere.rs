//! Memory that the program has from the kernel itself, beside this layer's.
//!
//! An allocator that a program brings along maps memory that is not served here. What this layer has cached
//! must not raise the process's peak then either: the frames of the one are to be those of the other. So that
//! memory counts in the rule of the peak (`State::excess`), and when it grows, what is cached goes.
//!
//! The account is of calls, not of frames: memory counts from when it is mapped for writing until as much has
//! been unmapped. It may be off where reserved memory is made accessible later, or files are unmapped. An
//! account that is too high lets the cache stay, as if there were no account; one that is too low flushes
//! more, at most what is mapped.
//!
//! Signal handlers map and unmap memory, too: nothing here waits for the lock, which the interrupted thread
//! may hold.

use crate::pages::Pages;
use crate::release::{Reason, is_worth_a_look};
use crate::tag::Kind;
use crate::units::PAGE;
use core::sync::atomic::Ordering::Relaxed;

impl Pages {
    /// Pages that the program has mapped elsewhere.
    pub(crate) fn elsewhere(&self) -> u64 {
        self.elsewhere.load(Relaxed)
    }

    /// Notes that the program has mapped `bytes` bytes elsewhere, to write to, and gives back what is cached
    /// as far as the process's peak would rise.
    pub fn mapped_elsewhere(&self, bytes: usize) {
        let pages = (bytes / PAGE) as u64;
        let elsewhere = self.elsewhere.fetch_add(pages, Relaxed).saturating_add(pages);
        let Some(mut state) = self.state.try_lock() else { return };
        state.note_peak(elsewhere);
        let may_flush = state.is_init
            && !state.still
            && state.config.discard.decays()
            && is_worth_a_look(state.free_pages(Kind::Warm));
        let over = if may_flush { state.excess(0, elsewhere).min(pages) } else { 0 };
        drop(state);
        if over > 0 {
            self.flush_some(Kind::Warm, over, Reason::Peak);
        }
    }

    /// Notes that the program has unmapped `bytes` bytes elsewhere.
    pub fn unmapped_elsewhere(&self, bytes: usize) {
        let pages = (bytes / PAGE) as u64;
        let _ = self.elsewhere.fetch_update(Relaxed, Relaxed, |before| Some(before.saturating_sub(pages)));
    }
}

#[cfg(test)]
mod tests {
    use crate::pages::{Pages, Request};
    use crate::units::PAGE;
    use core::sync::atomic::Ordering::Relaxed;
    use vellum_wire::{Counter, Slot};

    const MIB: usize = 1 << 20;

    /// A layer with `bytes` bytes cached, and its counters.
    fn with_cached(bytes: usize) -> (Pages, &'static Slot) {
        let pages = Pages::new();
        let slot: &'static Slot = Box::leak(Box::new(Slot::new()));
        pages.attach_slot(slot);
        let block = pages.alloc(Request { bytes, align: PAGE, zero: false }).expect("memory");
        // SAFETY: the block is new and nobody else's; it is written before it is given back.
        unsafe {
            block.addr.write_bytes(1, bytes);
            pages.free(block.addr).expect("a live block");
        }
        (pages, slot)
    }

    fn flushed(slot: &Slot) -> usize {
        slot.counter(Counter::FlushedPeak).load(Relaxed) as usize
    }

    #[test]
    fn what_is_cached_makes_room_for_what_is_mapped_elsewhere() {
        let (pages, slot) = with_cached(64 * MIB);
        pages.mapped_elsewhere(16 * MIB);
        let first = flushed(slot);
        assert!((13 * MIB..=16 * MIB).contains(&first), "{first} of 16 MiB");
        pages.mapped_elsewhere(200 * MIB);
        let cached = slot.counter(Counter::NowCached).load(Relaxed) as usize;
        assert!(cached <= 4 * MIB, "{cached} bytes are cached still");
    }

    #[test]
    fn memory_mapped_elsewhere_again_and_again_empties_the_cache_once() {
        let (pages, slot) = with_cached(64 * MIB);
        for _ in 0..100 {
            pages.mapped_elsewhere(16 * MIB);
            pages.unmapped_elsewhere(16 * MIB);
        }
        assert!(flushed(slot) <= 16 * MIB, "{} bytes went", flushed(slot));
    }

    #[test]
    fn unmapping_more_than_was_mapped_counts_as_all() {
        let (pages, _) = with_cached(MIB);
        pages.mapped_elsewhere(MIB);
        pages.unmapped_elsewhere(8 * MIB);
        assert_eq!(pages.elsewhere(), 0);
    }
}
