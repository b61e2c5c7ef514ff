//! Bits that mark needed pages, and the rule by which the contents of other pages may be dropped (Cooper,
//! Nettles and Subramanian 1992, section 4.1).
//!
//! The program marks a page as needed or not needed without a lock and without a system call. The evicting
//! thread drops pages that are not needed. The order of the two threads' steps makes this sound:
//!
//! | the program, before it uses a page again | the evicting thread, before it drops a page |
//! | --- | --- |
//! | 1. sets the page's bit | 1. announces a range of pages |
//! | 2. waits until no announced range has the page | 2. reads the page's bit |
//! | 3. writes to the page | 3. drops the page if the bit is clear, then withdraws the range |
//!
//! A fence lies between 1 and 2 on both sides. If the evicting thread reads a clear bit, the program set the
//! bit later. The program therefore sees the announcement, and writes after the page was dropped.
//! `tests/loom.rs` explores the interleavings.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};

const WORD: u32 = u64::BITS;

/// A bit for each page, in words that somebody else owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits<'w> {
    words: &'w [AtomicU64],
}

/// The bits of word `index` that stand for pages `start..end`.
fn mask(index: u32, start: u32, end: u32) -> u64 {
    let first = start.max(index * WORD) - index * WORD;
    let last = end.min((index + 1) * WORD) - index * WORD;
    let below = |bits: u32| if bits == WORD { !0 } else { (1u64 << bits) - 1 };
    below(last) & !below(first)
}

impl<'w> Bits<'w> {
    pub(crate) fn new(words: &'w [AtomicU64]) -> Bits<'w> {
        Bits { words }
    }

    pub(crate) fn set(self, start: u32, end: u32) {
        self.each(start, end, |word, mask| {
            word.fetch_or(mask, Ordering::AcqRel);
        });
    }

    pub(crate) fn clear(self, start: u32, end: u32) {
        self.each(start, end, |word, mask| {
            word.fetch_and(!mask, Ordering::AcqRel);
        });
    }

    fn each(self, start: u32, end: u32, act: impl Fn(&AtomicU64, u64)) {
        if start < end {
            for index in start / WORD..=(end - 1) / WORD {
                act(&self.words[index as usize], mask(index, start, end));
            }
        }
    }

    pub(crate) fn has(self, page: u32) -> bool {
        self.word(page / WORD) >> (page % WORD) & 1 != 0
    }

    /// The bits of the 64 pages from `index * 64` on, the first in the lowest bit.
    pub(crate) fn word(self, index: u32) -> u64 {
        self.words[index as usize].load(Ordering::Acquire)
    }

    /// Gives the bits of `mask` in that word the values they have in `bits`.
    pub(crate) fn replace(self, index: u32, mask: u64, bits: u64) {
        let word = &self.words[index as usize];
        word.fetch_and(bits | !mask, Ordering::AcqRel);
        word.fetch_or(bits & mask, Ordering::AcqRel);
    }

    /// The number of set bits of pages `start..end`.
    pub(crate) fn count(self, start: u32, end: u32) -> u32 {
        if start >= end {
            return 0;
        }
        let ones = |index| (self.word(index) & mask(index, start, end)).count_ones();
        (start / WORD..=(end - 1) / WORD).map(ones).sum()
    }

    /// The runs of pages in `start..end` whose bit is `wanted`: first and end of each.
    pub(crate) fn runs(self, start: u32, end: u32, wanted: bool) -> impl Iterator<Item = (u32, u32)> {
        let mut at = start;
        core::iter::from_fn(move || {
            while at < end && self.has(at) != wanted {
                at += 1;
            }
            let first = at;
            while at < end && self.has(at) == wanted {
                at += 1;
            }
            (first < at).then_some((first, at))
        })
    }
}

/// The range of pages that the evicting thread is about to drop; none if it is empty.
#[derive(Debug)]
pub(crate) struct Announced(AtomicU64);

impl Announced {
    #[cfg(not(loom))]
    pub(crate) const fn nothing() -> Announced {
        Announced(AtomicU64::new(0))
    }

    #[cfg(loom)]
    pub(crate) fn nothing() -> Announced {
        Announced(AtomicU64::new(0))
    }

    /// Calls `drop_unneeded`, which reads the bits of pages `start..end` and drops pages that are not needed.
    pub(crate) fn during<T>(&self, start: u32, end: u32, drop_unneeded: impl FnOnce() -> T) -> T {
        self.0.store(u64::from(start) << 32 | u64::from(end), Ordering::Release);
        fence(Ordering::SeqCst);
        let result = drop_unneeded();
        self.0.store(0, Ordering::Release);
        result
    }

    /// Waits, by `pause`, until none of pages `start..end` is announced. After their bits were set.
    pub(crate) fn wait_past(&self, start: u32, end: u32, pause: impl Fn()) {
        fence(Ordering::SeqCst);
        loop {
            let range = self.0.load(Ordering::Acquire);
            let (from, to) = ((range >> 32) as u32, range as u32);
            if to <= start || end <= from {
                return;
            }
            pause();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_page_by_page() {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let bits = Bits::new(&words);
        for (start, end) in [(0, 1), (63, 65), (64, 128), (0, 256), (200, 200), (5, 130)] {
            bits.set(start, end);
            for page in 0..256 {
                assert_eq!(bits.has(page), (start..end).contains(&page), "{page} of {start}..{end}");
            }
            assert_eq!(bits.count(0, 256), end - start);
            assert_eq!(bits.count(start, end), end - start);
            let run = (start < end).then_some((start, end));
            assert!(bits.runs(0, 256, true).eq(run));
            bits.clear(start, end);
            assert_eq!(bits.count(0, 256), 0, "{start}..{end}");
        }
        bits.replace(1, 0xff0, 0x5050);
        assert_eq!(bits.word(1), 0x050);
        assert!(bits.runs(60, 80, false).eq([(60, 68), (69, 70), (71, 80)]));
    }
}
