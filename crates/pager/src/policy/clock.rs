//! The clock, or first in first out with a second chance.
//!
//! The hand passes over mapped pages in the order in which they came; whatever it passes is held, which is
//! what clearing a reference bit is elsewhere. A page that is asked for before all that were held before it
//! are given up goes to the end again. With few held it is nearly FIFO, with many nearly LRU.

use super::Policy;
use super::list::{Link, List};
use crate::units::PageNo;

const MAPPED: u32 = 1;
const HELD: u32 = 2;

/// The clock policy.
#[derive(Debug)]
pub struct Clock {
    mapped: List,
    held: List,
}

impl Clock {
    /// A clock of no pages.
    pub const fn new() -> Clock {
        Clock { mapped: List::new(MAPPED), held: List::new(HELD) }
    }

    fn list_of(&mut self, links: &[Link], page: PageNo) -> &mut List {
        if self.held.has(links, page) { &mut self.held } else { &mut self.mapped }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

impl Policy for Clock {
    fn arrived(&mut self, links: &mut [Link], page: PageNo, now: u64) {
        links[page.index()].stamp = now;
        self.mapped.push(links, page);
    }

    fn referenced(&mut self, links: &mut [Link], page: PageNo, now: u64) {
        self.held.remove(links, page);
        self.arrived(links, page, now);
    }

    fn probe(&mut self, links: &mut [Link], _now: u64) -> Option<PageNo> {
        let page = self.mapped.pop(links)?;
        self.held.push(links, page);
        Some(page)
    }

    fn stays(&mut self, links: &mut [Link], page: PageNo) {
        self.held.remove(links, page);
        self.mapped.push(links, page);
    }

    fn victim(&mut self, links: &mut [Link], _now: u64) -> Option<PageNo> {
        self.held.pop(links)
    }

    fn spared(&mut self, links: &mut [Link], page: PageNo) {
        self.held.push(links, page);
    }

    fn gone(&mut self, links: &mut [Link], page: PageNo) {
        self.list_of(links, page).remove(links, page);
    }

    fn held(&self) -> u32 {
        self.held.len()
    }

    fn mapped(&self) -> u32 {
        self.mapped.len()
    }
}
