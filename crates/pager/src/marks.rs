//! Which pages are discardable: the bitmap that the program writes and the pager reads (section 4.1 of the
//! source).
//!
//! Nobody takes a lock. That is sound because of the order in which the two sides do things:
//!
//! | the program, before it uses a page again | the pager, before it drops a page |
//! | --- | --- |
//! | 1. clears the mark | 1. takes the page away, so that every access faults |
//! | 2. writes | 2. looks at the mark |
//!
//! If the pager sees the mark, the program's clearing came after the page was away, so its writes come later
//! still: they fault, and find a page of undefined contents, which is what a discardable page has. If the
//! program wrote before the page was taken away, its clearing came before that too, and the pager sees no
//! mark. Taking the page away orders the two: the kernel changes the page table under a lock and has every
//! processor forget its old entry. `tests/loom.rs` explores it with that as a lock.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

const WORD: u32 = u64::BITS;

/// A mark a page, over somebody's words. A bit that is zero is a mark: what nobody has said anything of is
/// not needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks<'w> {
    words: &'w [AtomicU64],
}

/// The bits of word `index` that stand for pages `start..end`.
fn mask(index: u32, start: u32, end: u32) -> u64 {
    let first = start.max(index * WORD) - index * WORD;
    let last = end.min((index + 1) * WORD) - index * WORD;
    let below = |bits: u32| if bits == WORD { !0 } else { (1u64 << bits) - 1 };
    below(last) & !below(first)
}

impl<'w> Marks<'w> {
    pub(crate) fn new(words: &'w [AtomicU64]) -> Marks<'w> {
        Marks { words }
    }

    /// Marks pages `start..end` as discardable.
    pub(crate) fn set(self, start: u32, end: u32) {
        self.each(start, end, |word, mask| {
            word.fetch_and(!mask, Ordering::Release);
        });
    }

    /// Says of pages `start..end` that their contents are needed from now on.
    pub(crate) fn clear(self, start: u32, end: u32) {
        self.each(start, end, |word, mask| {
            word.fetch_or(mask, Ordering::AcqRel);
        });
    }

    fn each(self, start: u32, end: u32, act: impl Fn(&AtomicU64, u64)) {
        if start < end {
            for index in start / WORD..=(end - 1) / WORD {
                act(&self.words[index as usize], mask(index, start, end));
            }
        }
    }

    /// Whether a page is discardable.
    pub(crate) fn has(self, page: u32) -> bool {
        self.words[(page / WORD) as usize].load(Ordering::Acquire) >> (page % WORD) & 1 == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn marks_are_kept_page_by_page() {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let marks = Marks::new(&words);
        marks.clear(0, 256);
        for (start, end) in [(0, 1), (63, 65), (64, 128), (0, 256), (200, 200), (5, 130)] {
            marks.set(start, end);
            for page in 0..256 {
                assert_eq!(marks.has(page), (start..end).contains(&page), "{page} of {start}..{end}");
            }
            marks.clear(start, end);
            assert!((0..256).all(|page| !marks.has(page)), "{start}..{end}");
        }
        marks.set(0, 256);
        marks.clear(60, 70);
        assert!((0..256).all(|page| marks.has(page) != (60..70).contains(&page)));
    }
}
