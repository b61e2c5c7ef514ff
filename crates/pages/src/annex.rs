//! Address space for a pager at the end of the span.
//!
//! Units that a pager has may be cut into small blocks like any others: whose a block is, its address must
//! tell, by one comparison and one table for all. So the end of the last arena is never this layer's to hand
//! out. It stays reserved, and costs nothing, until a pager asks for it.

use crate::pages::Pages;
use crate::state::{ARENAS, LARGE, SPAN, State};
use crate::units::{ANNEX_BYTES, ANNEX_UNITS, ARENA_BYTES, PAGE, UNIT, UNIT_SIDE};
use vellum_sys::map;

/// Where it starts in the last arena.
const START: usize = ARENA_BYTES - ANNEX_BYTES;
/// How many pages an arena may have.
pub(crate) const LIMITS: [u32; ARENAS] = {
    let mut limits = [(ARENA_BYTES / PAGE) as u32; ARENAS];
    limits[LARGE] = (START / PAGE) as u32;
    limits
};

impl State {
    fn annex(&self) -> usize {
        self.base + LARGE * ARENA_BYTES + START
    }

    /// The program puts a mapping of its own somewhere: from then on there may be one.
    pub(crate) fn annex_is_lost_to(&mut self, start: usize, end: usize) {
        let annex = self.annex();
        self.has_annex &= end <= annex || start >= annex + ANNEX_BYTES;
    }

    /// Unmaps what nobody has asked for, before everything mapped is locked into memory.
    pub(crate) fn release_annex(&mut self) {
        if core::mem::take(&mut self.has_annex) && self.arenas[LARGE].is_reserved() {
            // SAFETY: reserved, and taken into use by nobody.
            let _ = unsafe { map::release(self.annex(), ANNEX_BYTES) };
        }
    }
}

impl Pages {
    /// Lends the annex, [`ANNEX_BYTES`] of reserved address space within the span from the address that is the
    /// answer on, for good; the first [`ANNEX_UNITS`] of it have a side table. `None` if it has been lent
    /// before, or there is none: address space is limited here, or the program has used it.
    pub fn lend_annex(&self) -> Option<usize> {
        let mut state = self.state.lock();
        if !self.init(&mut state)
            || !state.arenas[LARGE].is_reserved()
            || !core::mem::take(&mut state.has_annex)
        {
            return None;
        }
        let annex = state.annex();
        let side = state.side + (annex - state.base) / UNIT * UNIT_SIDE;
        // SAFETY: this layer's own table, of units that it never hands out.
        unsafe { map::make_writable(side, ANNEX_UNITS / UNIT * UNIT_SIDE) }.ok()?;
        Some(annex)
    }
}

const _: () = assert!(LARGE + 1 == ARENAS && SPAN == ARENAS * ARENA_BYTES);
