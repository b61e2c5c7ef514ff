//! Reads, clears and sets the cards ([`cards`](crate::process::cards): write marks) of a range of pages.

use crate::process::cards::first;
use vellum_pages::PAGE;
use vellum_sys::track::Written;
use vellum_sys::{Addr, Span};

/// The cards of the pages of `span`.
pub(super) fn cards(span: Span) -> (*mut u8, usize) {
    let pages = span.touched(PAGE);
    (first().wrapping_add(pages.start.get() / PAGE), pages.page_count().get())
}

/// Fills `found` with ranges of pages of `span` whose cards are set, and clears these cards if
/// `again`. Returns where to go on.
pub(super) fn take_cards(span: Span, again: bool, found: &mut [Written], count: &mut usize) -> Addr {
    let (first, _) = cards(span);
    let mut last = Addr::NULL;
    for (page, at) in span.touched(PAGE).pages().enumerate() {
        // SAFETY: the cards of blocks lie within the table. Volatile: programs set them meanwhile, but the
        // world stands still.
        let card = unsafe { first.add(page).read_volatile() };
        if card == 0 {
            continue;
        }
        if *count > 0 && last == at {
            found[*count - 1].end = at + PAGE;
        } else if *count == found.len() {
            return at;
        } else {
            found[*count] = Written::new(at.max(span.start), at + PAGE);
            *count += 1;
        }
        last = at + PAGE;
        if again {
            // SAFETY: the cards of blocks lie within the table; the world stands still.
            unsafe { first.add(page).write_volatile(0) };
        }
    }
    span.end()
}

pub(super) fn set_cards(span: Span) {
    let (first, count) = cards(span);
    // SAFETY: the cards of blocks lie within the table.
    unsafe { first.write_bytes(1, count) };
}
