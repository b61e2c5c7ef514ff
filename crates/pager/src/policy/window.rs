//! The working-set window (Denning), by looks a quarter of a window apart.
//!
//! The working set W(t, T) is what was referenced in the last T of the process's CPU time. A mapped page may
//! have been referenced at any moment since it was last looked at, so it is looked at when that is T/4 ago,
//! wanted or not; a held page was last referenced, as far as can be known, when it was taken away, or within
//! the T/4 before. A held page older than T has left the working set and is given up first, the oldest before
//! others; only when there is none is the oldest of the set given up (which is what a fixed number of frames
//! forces: the window is then longer than the frames allow).
//!
//! Departure from the exact policy: a page leaves up to T/4 late (`tests/policies.rs` holds it to that).

use super::Policy;
use super::list::{Link, List};
use crate::units::PageNo;

const MAPPED: u32 = 1;
const HELD: u32 = 2;
/// Looks at a page in a window.
pub(super) const LOOKS: u64 = 4;

/// The working-set policy.
#[derive(Debug)]
pub struct Window {
    /// T, in the unit of `now`.
    length: u64,
    mapped: List,
    held: List,
}

impl Window {
    /// The policy of window `length`, in the unit of the times it gets.
    pub const fn new(length: u64) -> Window {
        Window { length, mapped: List::new(MAPPED), held: List::new(HELD) }
    }

    /// Whether `page` is in the working set at `now`, as far as is known.
    pub fn contains(&self, links: &[Link], page: PageNo, now: u64) -> bool {
        let link = &links[page.index()];
        link.list != 0 && now.saturating_sub(link.stamp) <= self.length
    }

    /// The oldest held page that has left the working set by `now`.
    pub fn outside(&self, links: &[Link], now: u64) -> Option<PageNo> {
        self.held.first().filter(|&page| !self.contains(links, page, now))
    }
}

impl Policy for Window {
    fn arrived(&mut self, links: &mut [Link], page: PageNo, now: u64) {
        links[page.index()].stamp = now;
        self.mapped.push(links, page);
    }

    fn referenced(&mut self, links: &mut [Link], page: PageNo, now: u64) {
        self.held.remove(links, page);
        self.arrived(links, page, now);
    }

    fn probe(&mut self, links: &mut [Link], now: u64) -> Option<PageNo> {
        let page = self.mapped.pop(links)?;
        // It may have been referenced until this moment.
        links[page.index()].stamp = now;
        self.held.push(links, page);
        Some(page)
    }

    fn stays(&mut self, links: &mut [Link], page: PageNo) {
        self.held.remove(links, page);
        self.mapped.push(links, page);
    }

    fn victim(&mut self, links: &mut [Link], _now: u64) -> Option<PageNo> {
        // Held pages are in the order of their stamps: the first is outside the window if any is.
        self.held.pop(links)
    }

    fn spared(&mut self, links: &mut [Link], page: PageNo) {
        self.held.push_first(links, page);
    }

    fn gone(&mut self, links: &mut [Link], page: PageNo) {
        let list = if self.held.has(links, page) { &mut self.held } else { &mut self.mapped };
        list.remove(links, page);
    }

    fn held(&self) -> u32 {
        self.held.len()
    }

    fn mapped(&self) -> u32 {
        self.mapped.len()
    }

    fn goes_by_time(&self) -> bool {
        true
    }

    fn is_due(&self, links: &[Link], now: u64) -> bool {
        let oldest = self.mapped.first().map(|page| links[page.index()].stamp);
        oldest.is_some_and(|stamp| now.saturating_sub(stamp) >= self.length / LOOKS)
    }
}
