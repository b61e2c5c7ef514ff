//! Discardable pages first, whatever policy chooses among the others.
//!
//! Section 7 of the source asks for exactly this, and could not have it. A page that becomes discardable
//! leaves the inner policy's care for a list of its own and is given up from there, the oldest first, before
//! the inner policy is asked; also if it is mapped, since the caller that said that its contents are not
//! needed will not reference it. If it is used again before it is given up, the pager notices (its mark is
//! clear) and says so by [`Policy::spared`].

use super::Policy;
use super::list::{Link, List};
use crate::units::PageNo;

const DISCARDABLE: u32 = 3;
/// What an `origin` says: the page is mapped, or it is held.
const WAS_MAPPED: u32 = 1;
const WAS_HELD: u32 = 2;

/// A policy around another.
#[derive(Debug)]
pub struct DiscardableFirst<P> {
    inner: P,
    discardable: List,
    mapped: u32,
}

impl<P: Policy> DiscardableFirst<P> {
    /// `inner`, with discardable pages first.
    pub const fn new(inner: P) -> DiscardableFirst<P> {
        DiscardableFirst { inner, discardable: List::new(DISCARDABLE), mapped: 0 }
    }

    /// Takes `page` off the list of discardable ones, if it is there.
    fn take(&mut self, links: &mut [Link], page: PageNo) -> bool {
        let is_there = self.discardable.has(links, page);
        if is_there {
            self.discardable.remove(links, page);
            self.mapped -= u32::from(links[page.index()].origin == WAS_MAPPED);
        }
        is_there
    }
}

impl<P: Policy> Policy for DiscardableFirst<P> {
    fn arrived(&mut self, links: &mut [Link], page: PageNo, now: u64) {
        self.inner.arrived(links, page, now);
    }

    fn referenced(&mut self, links: &mut [Link], page: PageNo, now: u64) {
        if self.take(links, page) {
            self.inner.arrived(links, page, now);
        } else {
            self.inner.referenced(links, page, now);
        }
    }

    fn probe(&mut self, links: &mut [Link], now: u64) -> Option<PageNo> {
        self.inner.probe(links, now)
    }

    fn stays(&mut self, links: &mut [Link], page: PageNo) {
        self.inner.stays(links, page);
    }

    fn victim(&mut self, links: &mut [Link], now: u64) -> Option<PageNo> {
        match self.discardable.first() {
            Some(page) => {
                self.take(links, page);
                Some(page)
            }
            None => self.inner.victim(links, now),
        }
    }

    fn spared(&mut self, links: &mut [Link], page: PageNo) {
        self.inner.spared(links, page);
    }

    fn gone(&mut self, links: &mut [Link], page: PageNo) {
        if !self.take(links, page) {
            self.inner.gone(links, page);
        }
    }

    fn discardable(&mut self, links: &mut [Link], page: PageNo) {
        if links[page.index()].list == 0 || self.discardable.has(links, page) {
            return;
        }
        let before = self.inner.mapped();
        self.inner.gone(links, page);
        let was_mapped = self.inner.mapped() < before;
        links[page.index()].origin = if was_mapped { WAS_MAPPED } else { WAS_HELD };
        self.mapped += u32::from(was_mapped);
        self.discardable.push(links, page);
    }

    fn held(&self) -> u32 {
        self.inner.held() + self.discardable.len() - self.mapped
    }

    fn mapped(&self) -> u32 {
        self.inner.mapped() + self.mapped
    }

    fn goes_by_time(&self) -> bool {
        self.inner.goes_by_time()
    }

    fn is_due(&self, links: &[Link], now: u64) -> bool {
        self.inner.is_due(links, now)
    }
}
