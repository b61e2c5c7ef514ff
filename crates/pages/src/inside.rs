//! Pages inside a unit in use, whose owner knows that nobody needs them.
//!
//! The unit stays handed out, and is booked as before: the pages come back, as zeros, when they are touched.
//! Its owner learns here when memory is short ([`Pages::was_short`]), which the helper finds out before it
//! calls the hook.

use crate::pages::Pages;
use crate::release::Reason;
use crate::shortage;
use crate::state::{Advice, DENSE};
use crate::units::PAGE;
use vellum_sys::map;

/// The share of an arena's huge pages that may be holes: more are not worth them.
const HOLES_SHARE: usize = 8;

impl Pages {
    /// Gives back the frames of some pages of the unit that starts at `unit`, a bit each. The bytes that
    /// went: none of those that are locked into memory.
    ///
    /// # Safety
    /// The unit is the caller's, and nobody needs what is on these pages.
    pub unsafe fn flush_inside(&self, unit: usize, pages: u16, is_asked: bool) -> usize {
        if self.state.lock().still {
            return 0;
        }
        let (mut left, mut gone) = (pages, 0);
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            // SAFETY: by this function's condition.
            if unsafe { map::flush(unit + first as usize * PAGE, count as usize * PAGE) }.is_ok() {
                gone += count as usize * PAGE;
            }
            left &= !(((1u32 << count) - 1) << first) as u16;
        }
        let reason = if is_asked { Reason::Asked } else { Reason::Decay };
        let mut state = self.state.lock();
        state.count(reason.counter(), gone as u64);
        state.holes += gone;
        gone
    }

    /// Takes the huge pages of small blocks back where enough pages inside units have gone.
    pub fn withdraw_huge(&self) {
        let mut state = self.state.lock();
        let granted = state.windows.arena_granted().min(state.arenas[DENSE].mapped_bytes());
        if state.still || state.holes == 0 || state.holes < granted / HOLES_SHARE {
            return;
        }
        state.holes = 0;
        let unwanted = state.windows.withdraw_arena();
        drop(state);
        Advice { unwanted, ..Advice::NONE }.give();
    }

    /// Calls `look` while nothing is handed out, given back or unmapped. It must not call the page layer.
    pub fn while_still<R>(&self, look: impl FnOnce() -> R) -> R {
        let _state = self.state.lock();
        look()
    }

    /// Says whether there are pages inside units in use that could go if memory were short.
    pub fn note_sparse(&self, is_sparse: bool) {
        shortage::note_sparse(is_sparse);
    }

    /// Whether memory was short since the last call.
    pub fn was_short(&self) -> bool {
        shortage::was_short()
    }
}
