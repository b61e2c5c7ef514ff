//! Cards: one byte a page, which the program sets itself at each store of a pointer.
//!
//! # Invariants
//! * Either all addresses of the heap's span have cards, or none; cards are never unmapped.
//! * The span is empty until its cards are there: its length is set last, and read first.

use crate::space::address_table::AddressTable;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use vellum_pages::PAGE;
use vellum_sys::track::Written;
use vellum_sys::{Addr, map, round_down, round_up};

/// The card of the page at address 0, for `vel_gc_write`: null while there are no cards.
///
/// `cards[address >> 12]` is the card of `address`. The pointer itself is mostly not a valid one.
#[unsafe(no_mangle)]
static vel_gc_cards: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// The addresses that have cards, for `vel_gc_write`: `struct vel_gc_span` of the header.
#[repr(C)]
struct Span {
    start: AtomicUsize,
    bytes: AtomicUsize,
}

/// Empty while there are no cards. A place elsewhere, in static data or on a stack, has none.
#[unsafe(no_mangle)]
static vel_gc_span: Span = Span { start: AtomicUsize::new(0), bytes: AtomicUsize::new(0) };

/// Stores `value` at `place`, and sets the card if that is within an object.
///
/// # Safety
/// The place may be written.
pub unsafe fn write(place: *mut usize, value: usize) {
    // SAFETY: by this function's condition. Volatile: the collector reads words that the compiler takes for
    // unread.
    unsafe { place.write_volatile(value) };
    wrote(place);
}

/// Sets the card of `place`, where a pointer was stored, if it is within an object.
#[inline]
pub fn wrote(place: *const usize) {
    let at = place.expose_provenance();
    let bytes = vel_gc_span.bytes.load(Ordering::Acquire);
    if at.wrapping_sub(vel_gc_span.start.load(Ordering::Relaxed)) < bytes {
        let cards = vel_gc_cards.load(Ordering::Relaxed);
        // SAFETY: within the span, which has a card for each page, and whose bytes were set after the cards.
        unsafe { cards.wrapping_add(at / PAGE).write_volatile(1) };
    }
}

/// Makes the cards for the addresses of `space`; false if there is no address space for them.
pub(crate) fn make(space: &AddressTable) -> bool {
    let (base, bytes) = space.span();
    let Ok(cards) = map::reserve_writable(bytes / PAGE) else { return false };
    vel_gc_cards.store(cards.start.ptr::<u8>().wrapping_sub(base / PAGE), Ordering::Release);
    vel_gc_span.start.store(base, Ordering::Release);
    vel_gc_span.bytes.store(bytes, Ordering::Release);
    true
}

/// The cards of the pages from `start` up to `end`.
pub(super) fn cards(start: usize, end: usize) -> (*mut u8, usize) {
    let first = round_down(start, PAGE) / PAGE;
    (vel_gc_cards.load(Ordering::Acquire).wrapping_add(first), round_up(end, PAGE) / PAGE - first)
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
            // SAFETY: the same card, within the table.
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

/// Whether there are cards: the program reports its writes.
pub(super) fn are_there() -> bool {
    !vel_gc_cards.load(Ordering::Acquire).is_null()
}
