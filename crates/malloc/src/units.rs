//! The source of units (64 KiB) for small blocks: the page layer, or the pager if all memory is paged.
//!
//! A user can have all memory of a process paged (*whole* paging). The first [`UNPAGED_MAX`] bytes of units
//! and mappings still come from the page layer, for two reasons. Most processes need no more, and start no
//! pager. And a forked child cannot use its parent's paged memory at first, but needs what the C library
//! allocated when the process began, such as its lists of open files.
//!
//! The source of a unit can be computed from the unit's address.

use crate::state::MALLOC;
use core::sync::atomic::Ordering::Relaxed;
use vellum_pager::process::{self, Place};
use vellum_pages::{ANNEX_BYTES, ANNEX_UNITS, HUGE, PAGE, Pages, UNIT};

/// Bytes of units and mappings that a process has before any of them are paged.
const UNPAGED_MAX: usize = 2 << 20;

// Values of `Paging::whole`.
const NO: u32 = 0;
/// Yes, if the pager can be started, which was not tried yet.
const ASKED: u32 = 1;
const YES: u32 = 2;

/// Has all memory paged, if the pager can be started.
pub(crate) fn page_all() {
    process::place_by(place);
    MALLOC.paging.whole.store(ASKED, Relaxed);
}

fn place() -> Option<Place> {
    const SPAN: usize = ANNEX_BYTES - HUGE;
    let start = Pages::global().lend_annex()?;
    Some(Place { start, pages: (SPAN / PAGE) as u32, near_pages: (ANNEX_UNITS / PAGE) as u32 })
}

/// True if `bytes` bytes of units or mappings more are to be paged.
#[inline]
pub(crate) fn are_paged_next(bytes: usize) -> bool {
    match MALLOC.paging.whole.load(Relaxed) {
        NO => false,
        YES => MALLOC.paging.unpaged.load(Relaxed) + bytes > UNPAGED_MAX && process::is_paging(),
        _ => MALLOC.paging.unpaged.load(Relaxed) + bytes > UNPAGED_MAX && can_page_all(),
    }
}

/// Finds out whether all memory can be paged: whether there is a pager, and its span has room for units.
#[cold]
fn can_page_all() -> bool {
    let can = process::ready().is_some_and(|pager| pager.has_units());
    MALLOC.paging.whole.store(if can { YES } else { NO }, Relaxed);
    can
}

/// Notes memory that is not paged, though its kind is.
pub(crate) fn note_unpaged(bytes: usize) {
    if MALLOC.paging.whole.load(Relaxed) != NO {
        MALLOC.paging.unpaged.fetch_add(bytes, Relaxed);
    }
}

/// Notes that such memory was given back.
pub(crate) fn note_unpaged_gone(bytes: usize) {
    let _ = MALLOC.paging.unpaged.fetch_update(Relaxed, Relaxed, |before| Some(before.saturating_sub(bytes)));
}

/// True if a unit is the pager's, or the one around an address.
#[inline]
pub(crate) fn are_paged(unit: *const u8) -> bool {
    process::pager().owns(unit)
}

/// Fetches units until `out` is full, or there are no more; how many.
pub(crate) fn fetch(out: &mut [*mut u8]) -> usize {
    if are_paged_next(out.len() * UNIT) {
        let mut filled = 0;
        for place in out.iter_mut() {
            let Ok(unit) = process::pager().create_unit(UNIT) else { break };
            *place = unit.as_ptr();
            filled += 1;
        }
        if filled > 0 {
            MALLOC.paging.has_units.store(true, Relaxed);
            return filled;
        }
        // No room in the store, or no more address space: a small block is no reason to refuse.
    }
    let filled = Pages::global().alloc_units(out);
    note_unpaged(filled * UNIT);
    filled
}

/// Gives units back. Safety: each was handed out by [`fetch`], and is used by nobody.
pub(crate) unsafe fn give_back(units: &[*mut u8]) {
    let mut rest = units;
    while let Some((&first, behind)) = rest.split_first() {
        if are_paged(first) {
            if let Some(unit) = core::ptr::NonNull::new(first) {
                // SAFETY: `fetch` got the unit from the pager, and the caller gives it up.
                let _ = unsafe { process::pager().destroy(unit) };
            }
            rest = behind;
            continue;
        }
        let run = rest.iter().take_while(|unit| !are_paged(**unit)).count();
        note_unpaged_gone(run * UNIT);
        // SAFETY: `fetch` got these units from the page layer, and the caller gives them up.
        unsafe { Pages::global().free_units(&rest[..run]) };
        rest = &rest[run..];
    }
}
