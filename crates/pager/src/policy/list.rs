//! Doubly linked lists of pages through one array, so that any page leaves its list at once.

use crate::table::Zero;
use crate::units::PageNo;

/// What a policy keeps of a page. Zero is a page in no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Link {
    /// Neighbours in the list, plus one; 0 is none.
    before: u32,
    after: u32,
    /// When the page was last known to be referenced.
    pub(super) stamp: u64,
    /// The list; 0 is none.
    pub(super) list: u32,
    /// The list that it was in before a wrapper took it.
    pub(super) origin: u32,
}

// SAFETY: integers only.
unsafe impl Zero for Link {}

impl Link {
    /// When the page was last known to be referenced.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Whether the page is in a policy's care.
    pub(crate) fn is_listed(&self) -> bool {
        self.list != 0
    }
}

/// A list, oldest first.
#[derive(Debug)]
pub(super) struct List {
    name: u32,
    first: u32,
    last: u32,
    len: u32,
}

impl List {
    /// An empty list called `name`, which is not 0 and no other list's.
    pub(super) const fn new(name: u32) -> List {
        List { name, first: 0, last: 0, len: 0 }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn has(&self, links: &[Link], page: PageNo) -> bool {
        links[page.index()].list == self.name
    }

    /// The oldest page.
    pub(super) fn first(&self) -> Option<PageNo> {
        self.first.checked_sub(1).map(PageNo)
    }

    /// Puts `page`, which is in no list, behind the newest.
    pub(super) fn push(&mut self, links: &mut [Link], page: PageNo) {
        debug_assert_eq!(links[page.index()].list, 0);
        let link = &mut links[page.index()];
        (link.list, link.before, link.after) = (self.name, self.last, 0);
        match self.last {
            0 => self.first = page.0 + 1,
            last => links[last as usize - 1].after = page.0 + 1,
        }
        self.last = page.0 + 1;
        self.len += 1;
    }

    /// Puts `page`, which is in no list, before the oldest.
    pub(super) fn push_first(&mut self, links: &mut [Link], page: PageNo) {
        debug_assert_eq!(links[page.index()].list, 0);
        let link = &mut links[page.index()];
        (link.list, link.before, link.after) = (self.name, 0, self.first);
        match self.first {
            0 => self.last = page.0 + 1,
            first => links[first as usize - 1].before = page.0 + 1,
        }
        self.first = page.0 + 1;
        self.len += 1;
    }

    /// Takes `page` out, which is in this list.
    pub(super) fn remove(&mut self, links: &mut [Link], page: PageNo) {
        debug_assert!(self.has(links, page));
        let Link { before, after, .. } = links[page.index()];
        match before {
            0 => self.first = after,
            before => links[before as usize - 1].after = after,
        }
        match after {
            0 => self.last = before,
            after => links[after as usize - 1].before = before,
        }
        let link = &mut links[page.index()];
        (link.list, link.before, link.after) = (0, 0, 0);
        self.len -= 1;
    }

    /// Takes the oldest out.
    pub(super) fn pop(&mut self, links: &mut [Link]) -> Option<PageNo> {
        let page = self.first()?;
        self.remove(links, page);
        Some(page)
    }
}
