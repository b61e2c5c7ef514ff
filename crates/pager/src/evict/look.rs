//! The scan that finds how many of the store's pages are in memory, and which ones.
//!
//! `cachestat` counts a range of the store in one call. If it is missing or forbidden, `mincore` scans the
//! whole store in steps of 2 MiB, which takes longer. `mincore` also finds which pages are in memory. A page
//! counts as read if it is in memory now, was not at the last scan, and has contents in the store.

use super::{Evictor, in_store};
use crate::stats;
use crate::units::STEP;
use core::sync::atomic::Ordering;
use vellum_sys::map;

const WORD: u32 = u64::BITS;

/// The pages of one step that are in memory now and were not at the look before, by bits.
pub(super) type Newly = [u64; (STEP / WORD) as usize];

impl Evictor {
    /// The steps that are mapped, in the order of their places.
    pub(super) fn step_at(&self, place: u32) -> u32 {
        self.pager.tables().places[place as usize].load(Ordering::Relaxed)
    }

    pub(super) fn count(&mut self) -> u32 {
        // Not the head: no object has it.
        match self.store.cached(super::HEAD * STEP, self.places * STEP) {
            _ if self.places == 0 => 0,
            Some(found) => found.pages,
            None => (0..self.places).map(|place| self.scan_step(self.step_at(place)).0).sum(),
        }
    }

    pub(super) fn count_step(&mut self, step: u32) -> u32 {
        match self.store.cached(in_store(self.pager, step * STEP), STEP) {
            Some(found) => found.pages,
            None => self.scan_step(step).0,
        }
    }

    /// Brings the bits of a step up to date; as [`Evictor::scan`].
    pub(super) fn scan_step(&mut self, step: u32) -> (u32, Newly) {
        self.scan(step * STEP, (step + 1) * STEP)
    }

    /// Updates the bits of pages `from..to` of one step. Returns how many are in memory, and which are new.
    pub(super) fn scan(&mut self, from: u32, to: u32) -> (u32, Newly) {
        let mut states = [0u8; STEP as usize];
        let states = &mut states[..(to - from) as usize];
        if map::mincore(self.pager.address(from), states).is_err() {
            return (0, Newly::default());
        }
        let tables = self.pager.tables();
        let (mut at, mut there, mut newly) = (from, 0, Newly::default());
        while at < to {
            let (index, first) = (at / WORD, at % WORD);
            let end = to.min((index + 1) * WORD);
            let bits = states[(at - from) as usize..(end - from) as usize]
                .iter()
                .rev()
                .fold(0u64, |bits, state| bits << 1 | u64::from(state & 1))
                << first;
            let mask = u64::MAX >> (WORD - (end - at)) << first;
            let new = bits & !tables.cached().word(index) & mask;
            let read = (new & tables.contents().word(index)).count_ones();
            stats::add(&self.pager.stats.read, read);
            newly[(index % (STEP / WORD)) as usize] |= new;
            tables.cached().replace(index, mask, bits);
            tables.contents().replace(index, bits, u64::MAX);
            there += bits.count_ones();
            at = end;
        }
        (there, newly)
    }
}
