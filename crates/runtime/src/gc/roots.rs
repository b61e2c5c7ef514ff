//! The functions of `vellum_gc.h` for roots that the program registers. The collector finds all other roots.

use super::refused;
use core::ffi::{c_int, c_void};
use vellum_gc as gc;

/// Reports a pointer.
///
/// # Safety
/// `visitor` is the procedure's argument, and the procedure has not returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_visit(visitor: *const gc::Visitor, pointer: *const c_void) {
    // SAFETY: `visitor` is valid during the procedure's call, by the `# Safety` section.
    unsafe { (*visitor).visit(pointer.cast()) };
}

/// Reports all pointers of a range.
///
/// # Safety
/// The conditions of [`vel_gc_visit`] apply, and the range can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_visit_words(
    visitor: *const gc::Visitor,
    start: *const c_void,
    end: *const c_void,
) {
    // SAFETY: `visitor` is valid and the range can be read, by the `# Safety` section.
    unsafe { (*visitor).visit_words(start.cast(), end.cast()) };
}

/// Sets the hook that reports further roots.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_roots(hook: Option<gc::RootsFn>) -> Option<gc::RootsFn> {
    gc::on_roots(hook)
}

/// Adds roots.
///
/// # Safety
/// The range can be read until it is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_roots_add(start: *const c_void, end: *const c_void) -> c_int {
    // SAFETY: the range can be read until it is removed, by the `# Safety` section.
    unsafe { gc::add_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Adds roots whose objects may move.
///
/// # Safety
/// The range can be read and written until it is removed. Its words hold pointers, or values that are no
/// addresses in the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_roots_add_precise(start: *mut c_void, end: *mut c_void) -> c_int {
    // SAFETY: the range meets the conditions of precise roots, by the `# Safety` section.
    unsafe { gc::add_precise_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Removes roots.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_roots_remove(start: *const c_void, end: *const c_void) -> usize {
    gc::remove_roots(start.cast(), end.cast())
}

/// Excludes static data from the roots.
///
/// # Safety
/// No word in the range is the only pointer to an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_roots_exclude(start: *const c_void, end: *const c_void) -> c_int {
    // SAFETY: no object depends on a word in the range, by the `# Safety` section.
    unsafe { gc::exclude_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Undoes exclusions of static data.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_roots_include(start: *const c_void, end: *const c_void) -> usize {
    gc::include_roots(start.cast(), end.cast())
}
