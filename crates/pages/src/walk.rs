//! Visits all units (64 KiB, cut into small blocks) in use, for callers that count their memory.

use crate::pages::Pages;
use crate::state::ARENAS;
use vellum_sys::Addr;

/// Units that are found at a time, and extents passed over at most, while the lock is held.
const UNITS_AT_ONCE: usize = 64;
const STEPS_AT_ONCE: usize = 512;

impl Pages {
    /// Calls `see` with the start of every unit handed out, without the lock: it may have been given back by
    /// then. A block of a unit's length and alignment is also among them.
    pub fn for_each_unit(&self, mut see: impl FnMut(Addr)) {
        for index in 0..ARENAS {
            let mut page = 0;
            loop {
                let (mut found, mut count) = ([Addr::NULL; UNITS_AT_ONCE], 0);
                let mut state = self.state.lock();
                if !state.is_init {
                    return;
                }
                let arena = &mut state.arenas[index];
                for _ in 0..STEPS_AT_ONCE {
                    if count == UNITS_AT_ONCE || page >= arena.mapped_pages() {
                        break;
                    }
                    let (is_unit, next) = arena.unit_at(page);
                    if is_unit {
                        found[count] = arena.address(page);
                        count += 1;
                    }
                    page = next;
                }
                let is_over = page >= arena.mapped_pages();
                drop(state);
                found[..count].iter().for_each(|&unit| see(unit));
                if is_over {
                    break;
                }
            }
        }
    }

    /// Calls `look`, which must not call the page layer, while nothing is handed out, freed or unmapped.
    pub fn while_still<R>(&self, look: impl FnOnce() -> R) -> R {
        let _state = self.state.lock();
        look()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{LARGE_MIN, PAGE, UNIT};
    use crate::{Extent, Request};
    use std::boxed::Box;
    use std::vec::Vec;

    #[test]
    fn units_are_found_among_other_blocks() {
        let pages: &Pages = Box::leak(Box::new(Pages::new()));
        assert!(units_of(pages).is_empty());
        let block = |bytes, align| pages.alloc(Request { bytes, align, zero: false }).unwrap();
        let mut units = Vec::new();
        let mut others = Vec::<Extent>::new();
        for round in 0..300 {
            let mut unit = [core::ptr::null_mut()];
            assert_eq!(pages.alloc_units(&mut unit), 1);
            units.push(Addr::of(unit[0]));
            others.push(block(PAGE * (1 + round % 40 + usize::from(round % 40 == 15)), PAGE));
        }
        others.push(block(LARGE_MIN * 8, PAGE));
        assert_eq!(units_of(pages), sorted(&units));
        let kept = units.split_off(150);
        // SAFETY: units of this test alone.
        units.iter().for_each(|&unit| unsafe { pages.free_units(&[unit.ptr()]) });
        assert_eq!(units_of(pages), sorted(&kept));
    }

    fn units_of(pages: &Pages) -> Vec<Addr> {
        let mut found = Vec::new();
        pages.for_each_unit(|unit| found.push(unit));
        assert!(found.iter().all(|unit| unit.is_aligned(UNIT)));
        sorted(&found)
    }

    fn sorted(list: &[Addr]) -> Vec<Addr> {
        let mut list = list.to_vec();
        list.sort_unstable();
        list
    }
}
