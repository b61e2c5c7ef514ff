//! Roots that the program registers, in addition to those that the collector finds.

use super::refused;
use core::ffi::{c_int, c_void};
use vellum_gc as gc;

/// Names a pointer.
///
/// # Safety
/// `visitor` is what a procedure was given, and the procedure has not returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_visit(visitor: *const gc::Visitor, pointer: *const c_void) {
    // SAFETY: the caller vouches for it.
    unsafe { (*visitor).visit(pointer.cast()) };
}

/// Names all pointers of a range.
///
/// # Safety
/// As [`vel_gc_visit`]; the range may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_visit_words(
    visitor: *const gc::Visitor,
    start: *const c_void,
    end: *const c_void,
) {
    // SAFETY: the caller vouches for both.
    unsafe { (*visitor).visit_words(start.cast(), end.cast()) };
}

/// Sets what names further roots.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_roots(hook: Option<gc::RootsFn>) -> Option<gc::RootsFn> {
    gc::on_roots(hook)
}

/// Adds roots.
///
/// # Safety
/// The range may be read until it is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_roots_add(start: *const c_void, end: *const c_void) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::add_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Adds roots whose objects may move.
///
/// # Safety
/// The range may be read and written until it is removed; its words hold pointers, or what is no address in
/// the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_roots_add_precise(start: *mut c_void, end: *mut c_void) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::add_precise_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Removes roots.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_roots_remove(start: *const c_void, end: *const c_void) -> usize {
    gc::remove_roots(start.cast(), end.cast())
}

/// Leaves static data out.
///
/// # Safety
/// No word there is the only one that leads to an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_roots_exclude(start: *const c_void, end: *const c_void) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::exclude_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Finds the static data again.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_roots_include(start: *const c_void, end: *const c_void) -> usize {
    gc::include_roots(start.cast(), end.cast())
}
