//! What of a freed block is resident: only that stays in the cache.
//!
//! A block that was handed out without frames may have been touched here and there only. Cached as a
//! whole it would be handed out again piece by piece, until every page of it is resident: sparse memory
//! would turn dense. So such a block is looked at when it is given back. Runs of at least [`RUN_MIN`]
//! resident pages stay warm, everything else turns cold. A block that was handed out warm, as all are
//! after a while, is resident throughout and costs nothing here.
//!
//! `mincore` tells at once that a block is mostly empty. It takes the shared page of zeros, which a program
//! that only reads is given, for a resident one; so the runs of larger blocks are found by
//! `/proc/self/pagemap`, where that can be had.

use crate::units::PAGE;
use vellum_sys::map::{self, RESIDENCY_MAX};
use vellum_sys::pagemap::PageMap;

/// The shortest run of resident pages that is worth keeping beside pages that are not.
const RUN_MIN: usize = 16;
/// From this many pages, opening the page map is cheap beside the faults that filled the block.
const MAPPED_MIN: usize = 32;
/// Places looked at to learn that a large block is empty.
const SAMPLES: usize = 8;

/// What is to be done with a block.
#[derive(Debug)]
pub(crate) enum Survey {
    /// All of it is resident, or nothing can be learnt.
    Whole,
    /// No run is worth keeping. The number of resident pages, about.
    Empty(usize),
    /// Some of it is resident.
    Parts(Parts),
}

/// Finds the runs of a block.
#[derive(Debug)]
pub(crate) struct Parts {
    map: Option<PageMap>,
    run_min: usize,
}

/// The next run to keep: `from..to`. What lies before it is to go, with `lost` resident pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) lost: usize,
}

impl Survey {
    /// Looks at the block of `pages` pages at `start`, which is in nobody's hands.
    pub(crate) fn of(start: usize, pages: usize) -> Survey {
        let run_min = RUN_MIN.min(pages);
        if pages <= RESIDENCY_MAX {
            let mut states = [0u8; RESIDENCY_MAX];
            let states = &mut states[..pages];
            if map::residency_into(start, states).is_none() {
                return Survey::Whole;
            }
            let is_there = |state: &u8| state & 1 != 0;
            if !states.split(|state| !is_there(state)).any(|run| run.len() >= run_min) {
                return Survey::Empty(states.iter().filter(|state| is_there(state)).count());
            }
            if pages < MAPPED_MIN && states.iter().all(is_there) {
                return Survey::Whole;
            }
        } else {
            // Many blocks are buffers, of which the front is used.
            let front = map::residency(start, run_min).is_none_or(|found| found.pages == run_min);
            // At distances that are no power of two, which programs' steps often are.
            let step = (pages / SAMPLES) | 1;
            let mut samples = (0..SAMPLES)
                .map(|sample| map::is_resident(start + (step / 2 + sample * step) % pages * PAGE));
            if !front && samples.all(|sample| sample == Some(false)) {
                return Survey::Empty(0);
            }
        }
        let map = if pages < MAPPED_MIN { None } else { PageMap::open().ok() };
        Survey::Parts(Parts { map, run_min })
    }
}

impl Parts {
    /// The next run in `at..end`, empty and at `end` if there is none.
    pub(crate) fn next(&self, at: usize, end: usize) -> Run {
        let (mut from, mut to, mut resident) = (at, at, 0);
        let is_long = |from: usize, to: usize| to - from >= self.run_min * PAGE;
        self.look(at, end, |page, is_resident| {
            if is_resident {
                to = page + PAGE;
                resident += 1;
            } else if is_long(from, to) {
                return false;
            } else {
                (from, to) = (page + PAGE, page + PAGE);
            }
            true
        });
        if is_long(from, to) {
            Run { from, to, lost: resident - (to - from) / PAGE }
        } else {
            Run { from: end, to: end, lost: resident }
        }
    }

    /// Calls `look` with each page and whether it is resident, until it answers false. Where that cannot be
    /// learnt it is.
    fn look(&self, at: usize, end: usize, mut look: impl FnMut(usize, bool) -> bool) {
        if let Some(map) = &self.map {
            let mut seen = at;
            let looked = map.look(at, end, |page, entry| {
                seen = page + PAGE;
                look(page, entry.is_own())
            });
            if looked.is_err() {
                (seen..end).step_by(PAGE).all(|page| look(page, true));
            }
            return;
        }
        let mut states = [1u8; RESIDENCY_MAX];
        for chunk in (at..end).step_by(RESIDENCY_MAX * PAGE) {
            let count = ((end - chunk) / PAGE).min(RESIDENCY_MAX);
            if map::residency_into(chunk, &mut states[..count]).is_none() {
                states.fill(1);
            }
            if !(0..count).all(|page| look(chunk + page * PAGE, states[page] & 1 != 0)) {
                return;
            }
        }
    }
}
