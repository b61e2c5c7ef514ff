//! Cards show written pages: one byte for each page, which the program sets when it stores a pointer there.
//!
//! # Invariants
//! * Either all addresses of the heap's span have cards, or none; cards are never unmapped.
//! * The span is empty until its cards are mapped: its length is set last, and read first.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use vellum_pages::PAGE;
use vellum_sys::map;

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
    // SAFETY: the caller may write the place. Volatile: the collector reads words behind the compiler's back.
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

/// Makes the cards for the `bytes` addresses from `base` on; false if there is no address space for them.
pub(crate) fn make(span: vellum_sys::Span) -> bool {
    let Ok(cards) = map::reserve_writable(span.bytes / PAGE) else { return false };
    vel_gc_cards.store(cards.start.ptr::<u8>().wrapping_sub(span.start.get() / PAGE), Ordering::Release);
    vel_gc_span.start.store(span.start.get(), Ordering::Release);
    vel_gc_span.bytes.store(span.bytes, Ordering::Release);
    true
}

/// The card of the page at address 0, by arithmetic; null while there are none.
pub(crate) fn first() -> *mut u8 {
    vel_gc_cards.load(Ordering::Acquire)
}

/// Returns whether there are cards: the program reports its writes.
pub(crate) fn are_there() -> bool {
    !first().is_null()
}
