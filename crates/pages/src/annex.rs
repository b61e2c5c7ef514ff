//! The annex: address space for a pager, at the end of the last arena.
//!
//! A pager's units (64 KiB each) may be cut into small blocks like any others. The owner of a block is found
//! from its address by one comparison and one table. The annex therefore lies next to the arenas. The page
//! layer never hands it out; it stays reserved, at no cost, until a pager takes it.

use crate::pages::Pages;
use crate::state::LARGE;
use crate::units::{ANNEX_UNITS, UNIT, UNIT_SIDE};
use vellum_sys::{Addr, map};

impl Pages {
    /// Lends the annex, [`ANNEX_BYTES`](crate::ANNEX_BYTES) of reserved address space within the span, for
    /// good: its address. The first [`ANNEX_UNITS`] of it have a side table. `None` if the annex was lent
    /// before, address space is limited, or the program has used it.
    pub fn lend_annex(&self) -> Option<Addr> {
        let mut state = self.state.lock();
        if !self.init(&mut state)
            || !state.arenas[LARGE].is_reserved()
            || !core::mem::take(&mut state.has_annex)
        {
            return None;
        }
        let [side, _] = state.annex_side().split_at(ANNEX_UNITS / UNIT * UNIT_SIDE);
        // SAFETY: this layer's own table, of units that it never hands out.
        unsafe { map::make_writable(side) }.ok()?;
        Some(state.annex().start)
    }
}
