//! Counts, without a lock, the bytes that `inside` gives back within units in use, and the holes that this
//! leaves in huge pages.

use crate::units::HUGE;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use vellum_sys::{Addr, Span};

#[derive(Debug)]
pub(crate) struct Inside {
    /// All system calls are forbidden but those that map memory.
    pub(crate) is_still: AtomicBool,
    /// Bytes of holes since the arena's huge pages were withdrawn.
    pub(crate) holes: AtomicUsize,
    /// The part of the arena that could be in huge pages at the last tick.
    granted: [AtomicUsize; 2],
    /// Bytes given back and not yet among the process's counters: by decay, and on request.
    pub(crate) decayed: AtomicUsize,
    pub(crate) asked: AtomicUsize,
}

impl Inside {
    pub(crate) const fn new() -> Inside {
        Inside {
            is_still: AtomicBool::new(false),
            holes: AtomicUsize::new(0),
            granted: [const { AtomicUsize::new(0) }; 2],
            decayed: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
        }
    }

    pub(crate) fn be_still(&self) {
        self.is_still.store(true, Relaxed);
    }

    /// Notes that `bytes` bytes at `start` were given back, which leaves holes if there are huge pages.
    pub(crate) fn note_holes(&self, start: Addr, bytes: usize) {
        let [from, to] = self.granted.each_ref().map(|word| Addr::new(word.load(Relaxed)));
        if Span::between(from, to).contains(start) {
            self.holes.fetch_add(bytes, Relaxed);
        }
    }

    pub(crate) fn note_granted(&self, granted: Option<Span>) {
        let granted = granted.unwrap_or(Span::EMPTY);
        self.granted[0].store(granted.start.get(), Relaxed);
        self.granted[1].store(granted.end().get(), Relaxed);
    }
}

/// Bytes of a span outside the huge pages that lie in it whole.
pub(crate) fn beside_whole_huge(span: Span) -> usize {
    span.bytes - span.whole(HUGE).bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::PAGE;

    #[test]
    fn only_parts_of_huge_pages_are_holes() {
        for (start, bytes, holes) in [
            (0, HUGE, 0),
            (HUGE, 4 * HUGE, 0),
            (PAGE, HUGE, HUGE),
            (PAGE, 3 * HUGE, HUGE),
            (HUGE - PAGE, 2 * PAGE, 2 * PAGE),
            (HUGE - PAGE, HUGE + 2 * PAGE, 2 * PAGE),
        ] {
            assert_eq!(beside_whole_huge(Span::new(Addr::new(start), bytes)), holes, "{start} {bytes}");
        }
    }
}
