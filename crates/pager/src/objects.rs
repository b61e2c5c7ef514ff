//! The allocator of memory objects: runs of pages in the pager's span. Free neighbours are joined.
//!
//! Each run has a tag at its first page and one at its last, so the runs beside it are found in constant time
//! (Knuth, boundary tags). Free runs are in lists by powers of two of their lengths. A new object comes from
//! the first list with a long enough run, at the lowest address of several tried, so that the tables stay
//! short. A collector's blocks are many and small, and so are the holes between them.
//!
//! A program may unmap any part of its mappings, so a bit also marks the first page of each mapping.

use crate::table::{Table, Zero};
use crate::units::PageNo;
use rustix::io::Errno;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// A block of the allocator's or the collector's, which ends as a whole.
    Block = 1,
    /// A mapping of the program's, of which any part may end.
    Mapping = 2,
}

/// A run in no use.
const FREE: u32 = 0;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Tag {
    /// If a run starts here: its pages, and the [`Kind`] of its use, or [`FREE`].
    len: u32,
    used: u32,
    /// If a run ends here: the page it starts at.
    start: u32,
    /// If a free run starts here: its neighbours in the list of free runs, plus one.
    before: u32,
    after: u32,
}

// SAFETY: integers only.
unsafe impl Zero for Tag {}

/// Lists of free runs: list `n` has those of 2^n pages and more, but less than 2^(n+1).
const LISTS: usize = u32::BITS as usize;
/// Runs of a list that are tried before the best is taken.
const TRIES: usize = 16;
pub(crate) const MAPPING_PAGES_MAX: u32 = 1 << 16;
/// Words of bits that a mapping may go on for.
const MAPPING_WORDS: usize = (MAPPING_PAGES_MAX / u64::BITS) as usize + 1;

#[derive(Debug)]
pub(crate) struct Objects {
    tags: Table<Tag>,
    /// A bit for each page at which a mapping starts.
    mappings: Table<u64>,
    pages: u32,
    /// The first run of each list, plus one.
    free: [u32; LISTS],
}

fn list_of(len: u32) -> usize {
    len.ilog2() as usize
}

impl Objects {
    pub(crate) const fn none() -> Objects {
        Objects { tags: Table::empty(), mappings: Table::empty(), pages: 0, free: [0; LISTS] }
    }

    /// A span of pages, free from the `first` on.
    pub(crate) fn new(first: u32, pages: u32) -> Result<Objects, Errno> {
        let tags = Table::new(pages as usize)?;
        let mappings = Table::new(pages.div_ceil(u64::BITS) as usize)?;
        let mut objects = Objects { tags, mappings, pages, free: [0; LISTS] };
        if first > 0 {
            objects.write(0, first, Kind::Block as u32);
        }
        if first < pages {
            objects.write(first, pages - first, FREE);
            objects.link(first);
        }
        Ok(objects)
    }

    fn tag(&mut self, page: u32) -> &mut Tag {
        &mut self.tags[page as usize]
    }

    fn write(&mut self, start: u32, len: u32, used: u32) {
        let tag = self.tag(start);
        (tag.len, tag.used) = (len, used);
        self.tag(start + len - 1).start = start;
        if used == Kind::Mapping as u32 {
            self.mappings[(start / u64::BITS) as usize] |= 1 << (start % u64::BITS);
        }
    }

    fn list(&mut self, start: u32) -> &mut u32 {
        let list = list_of(self.tag(start).len);
        &mut self.free[list]
    }

    fn link(&mut self, start: u32) {
        let first = core::mem::replace(self.list(start), start + 1);
        let tag = self.tag(start);
        (tag.before, tag.after) = (0, first);
        if first != 0 {
            self.tag(first - 1).before = start + 1;
        }
    }

    fn unlink(&mut self, start: u32) {
        let Tag { before, after, .. } = *self.tag(start);
        match before {
            0 => *self.list(start) = after,
            before => self.tag(before - 1).after = after,
        }
        if after != 0 {
            self.tag(after - 1).before = before;
        }
    }

    /// Finds the free run at the lowest address among `tries` of `list` with room for an object of `len`
    /// pages. Returns it, and the pages of it to skip for the alignment.
    fn fit(&self, list: usize, tries: usize, len: u32, align: u32, span_page: usize) -> Option<(u32, u32)> {
        let mut best: Option<(u32, u32)> = None;
        let mut at = self.free[list];
        for _ in 0..tries {
            let Some(start) = at.checked_sub(1) else { break };
            let tag = self.tags[start as usize];
            let first = span_page + start as usize;
            let skip = (first.next_multiple_of(align as usize) - first) as u32;
            if skip < tag.len && tag.len - skip >= len && best.is_none_or(|(found, _)| start < found) {
                best = Some((start, skip));
            }
            at = tag.after;
        }
        best
    }

    /// Makes an object of `len` pages whose first page's number is a multiple of `align`. Page `span_page` of
    /// the address space is the span's first.
    pub(crate) fn create(&mut self, kind: Kind, len: u32, align: u32, span_page: usize) -> Option<PageNo> {
        let lists = list_of(len)..LISTS;
        let fit = |tries| lists.clone().find_map(|list| self.fit(list, tries, len, align, span_page));
        let best = fit(TRIES).or_else(|| fit(usize::MAX));
        let (start, skip) = best?;
        let whole = self.tag(start).len;
        self.unlink(start);
        if skip > 0 {
            self.write(start, skip, FREE);
            self.link(start);
        }
        self.write(start + skip, len, kind as u32);
        self.free_rest(start + skip + len, whole - skip - len);
        Some(PageNo(start + skip))
    }

    fn free_rest(&mut self, start: u32, len: u32) {
        if len > 0 {
            self.write(start, len, FREE);
            self.link(start);
        }
    }

    /// The pages of the block that starts at `page`.
    pub(crate) fn len(&self, page: PageNo) -> Option<u32> {
        let tag = self.tags.get(page.index())?;
        (tag.used == Kind::Block as u32).then_some(tag.len)
    }

    /// The mapping that `page` is a part of: its first page, and how many.
    pub(crate) fn mapping(&self, page: PageNo) -> Option<(PageNo, u32)> {
        let (index, bit) = ((page.0 / u64::BITS) as usize, page.0 % u64::BITS);
        let below = self.mappings.get(index)? & (!0 >> (u64::BITS - 1 - bit));
        // No mapping is longer than the search goes on.
        let words = core::iter::once(below).chain(self.mappings[..index].iter().rev().copied());
        let (back, word) = words.take(MAPPING_WORDS).enumerate().find(|&(_, word)| word != 0)?;
        let start = (index - back) as u32 * u64::BITS + word.ilog2();
        let tag = self.tags[start as usize];
        (tag.used == Kind::Mapping as u32 && page.0 < start + tag.len).then_some((PageNo(start), tag.len))
    }

    /// Ends pages `from..to`, which are part of one mapping; what remains on either side is a mapping.
    pub(crate) fn cut(&mut self, from: u32, to: u32) {
        let Some((PageNo(start), len)) = self.mapping(PageNo(from)) else { return };
        if start < from {
            self.write(start, from - start, Kind::Mapping as u32);
        }
        if to < start + len {
            self.write(to, start + len - to, Kind::Mapping as u32);
        }
        self.write(from, to - from, Kind::Mapping as u32);
        self.destroy(PageNo(from), to - from);
    }

    pub(crate) fn destroy(&mut self, page: PageNo, len: u32) {
        let (mut start, mut end) = (page.0, page.0 + len);
        self.tag(start).used = FREE;
        self.mappings[(start / u64::BITS) as usize] &= !(1 << (start % u64::BITS));
        if start > 0 {
            let before = self.tag(start - 1).start;
            if self.tag(before).used == FREE {
                self.unlink(before);
                start = before;
            }
        }
        if end < self.pages && self.tag(end).used == FREE {
            self.unlink(end);
            end += self.tag(end).len;
        }
        // Tags inside a run must not look like the start of an object.
        self.tag(page.0).len = 0;
        self.write(start, end - start, FREE);
        self.link(start);
    }

    /// Makes the block of `len` pages at `page` one of `new` in place. False if there is no room behind it.
    pub(crate) fn resize(&mut self, page: PageNo, len: u32, new: u32) -> bool {
        let (end, new_end) = (page.0 + len, page.0 + new);
        let next = if end < self.pages {
            *self.tag(end)
        } else {
            Tag { len: 0, used: 1, start: 0, before: 0, after: 0 }
        };
        let free = if next.used == FREE { next.len } else { 0 };
        if new > len + free {
            return false;
        }
        if free > 0 {
            self.unlink(end);
        }
        self.write(page.0, new, Kind::Block as u32);
        self.free_rest(new_end, len + free - new);
        true
    }

    #[cfg(test)]
    pub(crate) fn validate(&mut self) -> Result<(), &'static str> {
        let (mut at, mut free, mut was_free) = (0, 0, false);
        while at < self.pages {
            let tag = *self.tag(at);
            if tag.len == 0 || at + tag.len > self.pages {
                return Err("a run has no sensible length");
            }
            if self.tag(at + tag.len - 1).start != at {
                return Err("a run's end does not lead to its start");
            }
            let is_free = tag.used == FREE;
            if is_free && was_free {
                return Err("two free runs are neighbours");
            }
            free += u32::from(is_free);
            was_free = is_free;
            at += tag.len;
        }
        let mut listed = 0;
        for list in 0..LISTS {
            let mut at = self.free[list];
            while at != 0 {
                if list_of(self.tag(at - 1).len) != list {
                    return Err("a free run is in the list of another length");
                }
                listed += 1;
                at = self.tag(at - 1).after;
            }
        }
        if listed == free { Ok(()) } else { Err("the list of free runs is not all of them") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn objects_never_overlap(steps in proptest::collection::vec((0u8..4, 0usize..20, 1u32..60), 1..200)) {
            const PAGES: u32 = 500;
            let mut objects = Objects::new(0, PAGES).expect("memory");
            let mut model: BTreeMap<u32, u32> = BTreeMap::new();
            for (what, which, len) in steps {
                let chosen = model.iter().nth(which % model.len().max(1)).map(|(&start, &len)| (start, len));
                match (what, chosen) {
                    (0 | 1, _) => {
                        let align = if what == 1 { 16 } else { 1 };
                        if let Some(page) = objects.create(Kind::Block, len, align, 5) {
                            prop_assert_eq!((page.0 + 5) % align, 0);
                            prop_assert!(model.iter().all(|(&start, &other)| page.0 + len <= start || start + other <= page.0));
                            prop_assert!(page.0 + len <= PAGES);
                            model.insert(page.0, len);
                        }
                    }
                    (2, Some((start, old))) => {
                        objects.destroy(PageNo(start), old);
                        model.remove(&start);
                        prop_assert_eq!(objects.len(PageNo(start)), None);
                    }
                    (_, Some((start, old))) => {
                        let next = model.range(start + 1..).next().map_or(PAGES, |(&next, _)| next);
                        let grown = objects.resize(PageNo(start), old, len);
                        prop_assert_eq!(grown, start + len <= next);
                        if grown {
                            model.insert(start, len);
                        }
                    }
                    _ => {}
                }
                prop_assert_eq!(objects.validate(), Ok(()));
                for (&start, &len) in &model {
                    prop_assert_eq!(objects.len(PageNo(start)), Some(len));
                }
            }
        }

        #[test]
        fn mappings_end_piece_by_piece(steps in proptest::collection::vec((0u8..3, 0u32..500, 1u32..90), 1..200)) {
            const PAGES: u32 = 500;
            const FIRST: u32 = 30;
            let mut objects = Objects::new(FIRST, PAGES).expect("memory");
            // Whose each page is: nobody's, a mapping's, or a block's.
            let mut model = [0u8; PAGES as usize];
            for (what, at, len) in steps {
                match what {
                    0 | 1 => {
                        let kind = if what == 0 { Kind::Mapping } else { Kind::Block };
                        if let Some(page) = objects.create(kind, len, 1, 0) {
                            prop_assert!(page.0 >= FIRST);
                            let taken = &mut model[page.index()..(page.0 + len) as usize];
                            prop_assert!(taken.iter().all(|&whose| whose == 0));
                            taken.fill(what + 1);
                        }
                    }
                    _ => {
                        let (mut at, end) = (at, (at + len).min(PAGES));
                        while at < end {
                            let Some((start, pages)) = objects.mapping(PageNo(at)) else { at += 1; continue };
                            let to = end.min(start.0 + pages);
                            objects.cut(at, to);
                            prop_assert!(model[at as usize..to as usize].iter().all(|&whose| whose == 1));
                            model[at as usize..to as usize].fill(0);
                            at = to;
                        }
                    }
                }
                prop_assert_eq!(objects.validate(), Ok(()));
                for page in 0..PAGES {
                    prop_assert_eq!(objects.mapping(PageNo(page)).is_some(), model[page as usize] == 1);
                }
            }
        }
    }
}
