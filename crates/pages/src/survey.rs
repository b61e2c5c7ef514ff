//! Finds the resident part of a freed block; only this part stays in the cache.
//!
//! The program may have touched only some pages of a block that was handed out without frames. If all of
//! such a block were cached, it would be handed out again piece by piece, until every page of it is
//! resident. Sparse memory would turn dense. Therefore such a block is surveyed when it is freed: runs of at
//! least [`RUN_MIN`] resident pages stay warm, everything else turns cold. A block that was handed out warm,
//! as most are after a while, is resident throughout and needs no survey.
//!
//! `mincore` finds at once that a block is mostly empty. But it counts the shared page of zeros, which a
//! read maps, as resident. In larger blocks `/proc/self/pagemap` finds the runs instead, if it is available.

use crate::units::PAGE;
use vellum_sys::map::{self, RESIDENCY_MAX};
use vellum_sys::pagemap::PageMap;
use vellum_sys::{Addr, Span};

/// The shortest run of resident pages that is worth keeping beside pages that are not.
const RUN_MIN: usize = 16;
/// From this many pages, opening the page map is cheap beside the faults that filled the block.
const MAPPED_MIN: usize = 32;
/// Places looked at to learn that a large block is empty.
const SAMPLES: usize = 8;

#[derive(Debug)]
pub(crate) enum Survey {
    /// All of it is resident, or nothing can be learnt.
    Whole,
    /// No run is worth keeping. The number of resident pages, about.
    Empty(usize),
    Parts(Parts),
}

#[derive(Debug)]
pub(crate) struct Parts {
    map: Option<PageMap>,
    run_min: usize,
}

/// The next run to keep. Before it are `lost` resident pages, which are to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) kept: Span,
    pub(crate) lost: usize,
}

impl Survey {
    pub(crate) fn of(block: Span) -> Survey {
        let (start, pages) = (block.start, block.page_count().get());
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
            let [front, _] = block.split_at(run_min * PAGE);
            let front = map::residency(front).is_none_or(|found| found.pages == run_min);
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
    /// The next run in `rest`; empty, at the end of `rest`, without one.
    pub(crate) fn next(&self, rest: Span) -> Part {
        let (mut run, mut resident) = (Span::new(rest.start, 0), 0);
        let is_long = |run: Span| run.bytes >= self.run_min * PAGE;
        self.for_each_page(rest, |page, is_resident| {
            if is_resident {
                run.bytes += PAGE;
                resident += 1;
            } else if is_long(run) {
                return false;
            } else {
                run = Span::new(page + PAGE, 0);
            }
            true
        });
        if is_long(run) {
            Part { kept: run, lost: resident - run.page_count().get() }
        } else {
            Part { kept: Span::new(rest.end(), 0), lost: resident }
        }
    }

    /// Calls `visit` with each page and whether it is resident, until it returns false. A page of which that
    /// cannot be found out counts as resident.
    fn for_each_page(&self, span: Span, mut visit: impl FnMut(Addr, bool) -> bool) {
        if let Some(map) = &self.map {
            let mut seen = span.start;
            let visited = map.for_each(span, |page, entry| {
                seen = page + PAGE;
                visit(page, entry.is_own())
            });
            if visited.is_err() {
                span.from(seen).pages().all(|page| visit(page, true));
            }
            return;
        }
        let mut states = [1u8; RESIDENCY_MAX];
        for piece in span.pieces(RESIDENCY_MAX * PAGE) {
            if map::residency_into(piece.start, &mut states[..piece.page_count().get()]).is_none() {
                states.fill(1);
            }
            if !piece.pages().zip(&states).all(|(page, state)| visit(page, state & 1 != 0)) {
                return;
            }
        }
    }
}
