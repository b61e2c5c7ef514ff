//! Finds free extents by size: lists for ranges of sizes, and a bitmap of the lists that are not empty.
//!
//! Sizes up to 15 pages have a list each; above, there are eight lists for each doubling of the size. A list
//! is doubly linked, the newest extent first, by page numbers in the tag table. So nothing is allocated, and
//! any extent is removed in constant time. `Bins` holds only numbers; the links are in the tags.

use crate::tag::{NONE, PageNo, Tags};

const EXACT: u32 = 16;
const STEPS_LOG2: u32 = 3;
const COUNT: usize = (EXACT + (32 - 4) * (1 << STEPS_LOG2)) as usize;
const WORDS: usize = COUNT.div_ceil(64);
/// Extents looked at in the list that may hold a tighter fit.
const SCAN_MAX: usize = 32;
/// Extents looked at in each list where every extent is large enough.
const SCAN_LARGER_MAX: usize = 8;

pub(crate) struct Bins {
    heads: [PageNo; COUNT],
    tails: [PageNo; COUNT],
    filled: [u64; WORDS],
    pub(crate) pages: u64,
}

/// A set of lengths, as coarse as the lists.
#[derive(Debug)]
pub(crate) struct Lengths([u64; WORDS]);

impl Lengths {
    pub(crate) const fn new() -> Lengths {
        Lengths([0; WORDS])
    }

    pub(crate) fn has(&self, pages: u32) -> bool {
        let bin = bin_of(pages);
        self.0[bin / 64] & 1 << (bin % 64) != 0
    }

    pub(crate) fn set(&mut self, pages: u32, is_in: bool) {
        let bin = bin_of(pages);
        self.0[bin / 64] = self.0[bin / 64] & !(1 << (bin % 64)) | u64::from(is_in) << (bin % 64);
    }
}

fn bin_of(pages: u32) -> usize {
    if pages < EXACT {
        return pages as usize;
    }
    let log2 = 31 - pages.leading_zeros();
    let step = (pages >> (log2 - STEPS_LOG2)) & ((1 << STEPS_LOG2) - 1);
    (EXACT + ((log2 - 4) << STEPS_LOG2) + step) as usize
}

/// The start of `pages` pages aligned to `align` pages in the free extent, if they fit.
pub(crate) fn fit(start: PageNo, len: u32, pages: u32, align: u32) -> Option<PageNo> {
    let at = start.checked_next_multiple_of(align)?;
    (u64::from(at) + u64::from(pages) <= u64::from(start) + u64::from(len)).then_some(at)
}

impl Bins {
    pub(crate) const fn new() -> Bins {
        Bins { heads: [NONE; COUNT], tails: [NONE; COUNT], filled: [0; WORDS], pages: 0 }
    }

    pub(crate) fn insert(&mut self, tags: &mut Tags, start: PageNo, pages: u32) {
        let bin = bin_of(pages);
        let old = self.heads[bin];
        let tag = tags.at(start);
        tag.prev = NONE;
        tag.next = old;
        if old == NONE {
            self.tails[bin] = start;
            self.filled[bin / 64] |= 1 << (bin % 64);
        } else {
            tags.at(old).prev = start;
        }
        self.heads[bin] = start;
        self.pages += u64::from(pages);
    }

    pub(crate) fn remove(&mut self, tags: &mut Tags, start: PageNo) {
        let tag = *tags.at(start);
        let bin = bin_of(tag.pages);
        match tag.prev {
            NONE => self.heads[bin] = tag.next,
            prev => tags.at(prev).next = tag.next,
        }
        match tag.next {
            NONE => self.tails[bin] = tag.prev,
            next => tags.at(next).prev = tag.prev,
        }
        if self.heads[bin] == NONE {
            self.filled[bin / 64] &= !(1 << (bin % 64));
        }
        self.pages -= u64::from(tag.pages);
    }

    fn next_filled(&self, bin: usize) -> Option<usize> {
        let mut word = bin / 64;
        if word >= WORDS {
            return None;
        }
        let mut bits = self.filled[word] & (!0 << (bin % 64));
        while bits == 0 {
            word += 1;
            bits = *self.filled.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    fn previous_filled(&self, bin: usize) -> Option<usize> {
        (0..=bin).rev().find(|&bin| self.filled[bin / 64] & (1 << (bin % 64)) != 0)
    }

    /// The tightest free extent found that holds `pages` aligned pages, and where they start in it.
    pub(crate) fn best_fit(&self, tags: &mut Tags, pages: u32, align: u32) -> Option<(PageNo, PageNo)> {
        let mut bin = bin_of(pages);
        let mut limit = SCAN_MAX;
        while let Some(filled) = self.next_filled(bin) {
            let mut best: Option<(u32, PageNo, PageNo)> = None;
            let mut start = self.heads[filled];
            for _ in 0..limit {
                if start == NONE {
                    break;
                }
                let tag = *tags.at(start);
                if let Some(at) = fit(start, tag.pages, pages, align)
                    && best.is_none_or(|(tightest, ..)| tag.pages < tightest)
                {
                    best = Some((tag.pages, start, at));
                    if tag.pages == pages {
                        break;
                    }
                }
                start = tag.next;
            }
            if let Some((_, start, at)) = best {
                return Some((start, at));
            }
            bin = filled + 1;
            limit = SCAN_LARGER_MAX;
        }
        None
    }

    /// Calls `look` with at most `most` extents, largest lists and oldest first, until it returns a value.
    pub(crate) fn largest<T>(
        &self,
        tags: &mut Tags,
        most: usize,
        mut look: impl FnMut(&mut Tags, PageNo, u32) -> Option<T>,
    ) -> Option<T> {
        let mut left = most;
        let mut bin = self.previous_filled(COUNT - 1);
        while let Some(filled) = bin {
            let mut start = self.tails[filled];
            while start != NONE {
                if left == 0 {
                    return None;
                }
                left -= 1;
                let tag = *tags.at(start);
                if let Some(answer) = look(tags, start, tag.pages) {
                    return Some(answer);
                }
                start = tag.prev;
            }
            bin = filled.checked_sub(1).and_then(|below| self.previous_filled(below));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_grow_with_size_and_stay_in_range() {
        let mut last = 0;
        for pages in (1..4096).chain([1 << 20, u32::MAX - 1, u32::MAX]) {
            let bin = bin_of(pages);
            assert!(bin >= last && bin < COUNT, "{pages} pages in bin {bin}");
            last = bin;
        }
    }

    #[test]
    fn fits_respect_alignment() {
        assert_eq!(fit(3, 10, 4, 8), Some(8));
        assert_eq!(fit(3, 8, 4, 8), None);
        assert_eq!(fit(8, 4, 4, 8), Some(8));
        assert_eq!(fit(u32::MAX - 2, 2, 1, 512), None);
    }
}
