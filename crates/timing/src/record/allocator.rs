//! Marks for Vellum's page layer: they show that this layer returned pages to the kernel during an
//! observation.
//!
//! The page layer counts returned pages by reason, in a set of counters that all code of the process can read
//! (a *slot* of `vellum-wire`). If a counter changed, the mark covers the whole observation, because counters
//! have no time.
//!
//! Under `vellum run`, the preloaded library's slot is read, in the file of counters that all processes share
//! (the *board*). Without a board, the slot of the page layer linked into this program is read. If that layer
//! is not used, its counters do not change.

use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use vellum_measure::MarkCause;
use vellum_wire::{BOARD_ENV, Board, Counter, Slot};

/// The counters of returned pages, each with its cause.
const WATCHED: [(Counter, MarkCause); 5] = [
    (Counter::FlushedDecay, MarkCause::Decay),
    (Counter::FlushedPeak, MarkCause::Trim),
    (Counter::FlushedPressure, MarkCause::Trim),
    (Counter::FlushedAsked, MarkCause::Trim),
    (Counter::BytesDiscarded, MarkCause::Trim),
];

/// The watched causes whose counters changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gave {
    pub(super) decay: bool,
    pub(super) trim: bool,
}

impl Gave {
    /// The causes, each once.
    pub(super) fn causes(self) -> impl Iterator<Item = MarkCause> {
        let known = [(self.decay, MarkCause::Decay), (self.trim, MarkCause::Trim)];
        known.into_iter().filter(|(gave, _)| *gave).map(|(_, cause)| cause)
    }
}

/// The allocator's counters at the last look.
#[derive(Debug)]
pub(super) struct Allocator {
    slot: &'static Slot,
    last: [u64; WATCHED.len()],
}

impl Allocator {
    pub(super) fn find() -> Allocator {
        let slot = preloaded().unwrap_or_else(|| vellum_pages::Pages::global().slot());
        let mut found = Allocator { slot, last: [0; WATCHED.len()] };
        found.look();
        found
    }

    /// The causes whose counters changed since the last look.
    #[inline]
    pub(super) fn look(&mut self) -> Gave {
        let mut gave = Gave::default();
        for ((counter, cause), last) in WATCHED.iter().zip(&mut self.last) {
            let now = self.slot.get(*counter);
            if now != *last {
                *last = now;
                gave.decay |= *cause == MarkCause::Decay;
                gave.trim |= *cause == MarkCause::Trim;
            }
        }
        gave
    }
}

/// The slot of this process on the board named in its environment, if a library claimed one.
fn preloaded() -> Option<&'static Slot> {
    static BOARD: OnceLock<Option<Board<'static>>> = OnceLock::new();
    let board = BOARD.get_or_init(|| {
        let file = std::fs::File::options().read(true).write(true).open(std::env::var_os(BOARD_ENV)?).ok()?;
        let bytes = file.metadata().ok()?.len() as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses; it overlaps no memory in use, and is
        // never unmapped.
        let base =
            unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, &file, 0) }.ok()?;
        // SAFETY: the mapping has `bytes` bytes, is page-aligned and is never unmapped; other processes also
        // access it only as a board.
        unsafe { Board::open(base.cast(), bytes) }
    });
    let me = std::process::id();
    // The last slot is the current one: a process that calls exec claims another slot.
    board.as_ref()?.claimed().iter().rev().find(|slot| slot.pid.load(Relaxed) == me)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_counter_is_reported_once() {
        static SLOT: Slot = Slot::new();
        let mut allocator = Allocator { slot: &SLOT, last: [0; WATCHED.len()] };
        assert_eq!(allocator.look(), Gave::default());
        SLOT.add(Counter::FlushedPressure, 4096);
        SLOT.add(Counter::FlushedAsked, 4096);
        assert_eq!(allocator.look().causes().collect::<Vec<_>>(), [MarkCause::Trim]);
        SLOT.add(Counter::FlushedDecay, 4096);
        assert_eq!(allocator.look().causes().collect::<Vec<_>>(), [MarkCause::Decay]);
        SLOT.add(Counter::CacheHits, 1);
        assert_eq!(allocator.look(), Gave::default());
    }

    #[test]
    fn the_linked_page_layer_is_watched() {
        let mut allocator = Allocator::find();
        if preloaded().is_some() {
            vellum_skip::skip("this process has a seat on a board");
            return;
        }
        vellum_pages::Pages::global().slot().add(Counter::FlushedAsked, 1);
        assert_eq!(allocator.look().causes().collect::<Vec<_>>(), [MarkCause::Trim]);
    }
}
