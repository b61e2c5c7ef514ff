//! Exported functions by which a program adds and removes [`roots`](crate::trace::roots), and excludes static
//! data from them.

use crate::mutator::access::{Refused, address, look};
use crate::mutator::attach;
use crate::mutator::collect::look_with_room;
use crate::process::hooks::ImageFn;
use crate::space::size_class::WORD;
use vellum_pages::PAGE;
use vellum_sys::Span;

/// Adds the words from `start` up to `end` to the roots: they are scanned, as static data is.
///
/// # Safety
/// The range may be read until it is removed.
pub unsafe fn add_roots(start: *const u8, end: *const u8) -> Result<(), Refused> {
    add(start, end, false)
}

/// Adds the words from `start` up to `end` to the roots. They are scanned as the pointers of typed objects
/// are: their objects may move, and they are changed then.
///
/// # Safety
/// The range may be read and written until it is removed. Each of its words holds a pointer, or a value that
/// is no address in the heap.
pub unsafe fn add_precise_roots(start: *const u8, end: *const u8) -> Result<(), Refused> {
    add(start, end, true)
}

fn add(start: *const u8, end: *const u8, precise: bool) -> Result<(), Refused> {
    let range = words_from(start, end);
    look_with_room(|_| PAGE, |heap| heap.roots.add(range, precise).map_err(|_| Refused::OutOfMemory))
}

/// The first whole word from `start` on, up to `end`. A range without a whole word is empty, and lies in the
/// range that was given, by which it is removed.
fn words_from(start: *const u8, end: *const u8) -> Span {
    let end = address(end);
    Span::between(address(start).round_up(8).min(end), end)
}

/// Adds the words from `start` up to `end` to the roots until the calling thread ends. They are thread-local
/// data of a library that was loaded late, or other memory of the thread's.
///
/// # Safety
/// The range may be read until it is removed or the thread ends.
pub unsafe fn add_thread_roots(start: *const u8, end: *const u8) -> Result<(), Refused> {
    let range = words_from(start, end);
    let key = attach::attached().ok_or(Refused::OutOfMemory)?.key();
    look_with_room(|_| PAGE, |heap| heap.roots.add_of_thread(range, key).map_err(|_| Refused::OutOfMemory))
}

/// Excludes whole words of static data from `start` up to `end` from the roots: they are not scanned from the
/// next collection on.
///
/// # Safety
/// Until [`include_roots`], every live object is reachable without these words.
pub unsafe fn exclude_roots(start: *const u8, end: *const u8) -> Result<(), Refused> {
    let range = whole_words(start, end);
    look_with_room(|_| PAGE, |heap| heap.roots.exclude(range).map_err(|_| Refused::OutOfMemory))
}

/// Undoes every [`exclude_roots`] of ranges within this one; returns how many there were.
pub fn include_roots(start: *const u8, end: *const u8) -> usize {
    look(|heap| heap.roots.include(whole_words(start, end))).unwrap_or(0)
}

/// Sets the function that decides which libraries' static data is scanned; returns the previous one.
pub fn on_image(hook: Option<ImageFn>) -> Option<ImageFn> {
    look(|heap| heap.roots.on_image(hook)).flatten()
}

fn whole_words(start: *const u8, end: *const u8) -> Span {
    Span::between(address(start), address(end)).whole(WORD)
}

/// Undoes every [`add_roots`] and [`add_precise_roots`] of ranges within this one; returns their number.
pub fn remove_roots(start: *const u8, end: *const u8) -> usize {
    look(|heap| heap.roots.remove(Span::between(address(start), address(end)))).unwrap_or(0)
}
