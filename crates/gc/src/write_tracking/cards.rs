//! The cards ([`cards`](crate::process::cards)) of a range of pages: read, cleared and set.

use crate::process::cards::first;
use vellum_pages::PAGE;
use vellum_sys::track::Written;
use vellum_sys::{Addr, round_down, round_up};

/// The cards of the pages from `start` up to `end`.
pub(super) fn cards(start: usize, end: usize) -> (*mut u8, usize) {
    let page = round_down(start, PAGE) / PAGE;
    (first().wrapping_add(page), round_up(end, PAGE) / PAGE - page)
}

/// Fills `found` with ranges of pages from `start` up to `end` whose cards are set, and clears these cards if
/// `again`. Returns where to go on.
pub(super) fn take_cards(
    start: usize,
    end: usize,
    again: bool,
    found: &mut [Written],
    count: &mut usize,
) -> usize {
    let (first, pages) = cards(start, end);
    let base = round_down(start, PAGE);
    let mut last = 0;
    for page in 0..pages {
        // SAFETY: the cards of blocks lie within the table. Volatile: programs set them meanwhile, but the
        // world stands still.
        let card = unsafe { first.add(page).read_volatile() };
        if card == 0 {
            continue;
        }
        let at = base + page * PAGE;
        if *count > 0 && last == at {
            found[*count - 1].end = Addr::new(at + PAGE);
        } else if *count == found.len() {
            return at;
        } else {
            found[*count] = Written::new(Addr::new(at.max(start)), Addr::new(at + PAGE));
            *count += 1;
        }
        last = at + PAGE;
        if again {
            // SAFETY: the cards of blocks lie within the table; the world stands still.
            unsafe { first.add(page).write_volatile(0) };
        }
    }
    end
}

pub(super) fn set_cards(start: usize, end: usize) {
    let (first, count) = cards(start, end);
    // SAFETY: the cards of blocks lie within the table.
    unsafe { first.write_bytes(1, count) };
}
