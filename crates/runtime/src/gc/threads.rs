//! Threads: registration, roots, safepoints and blocking regions.

use super::{refuse, refused};
use core::ffi::{c_int, c_void};
use vellum_gc as gc;

/// Calls `function(argument)` from within a blocking region as if outside of it.
///
/// # Safety
/// The function may be called so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_active(
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller vouches for it.
    gc::active(|| unsafe { function(argument) })
}

/// Makes the calling thread known.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_thread_enter() -> c_int {
    if gc::enter() { 0 } else { refuse(libc::ENOMEM) }
}

/// Adds roots of the calling thread.
///
/// # Safety
/// The range may be read until it is removed or the thread ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_thread_roots_add(start: *const c_void, end: *const c_void) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::add_thread_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Stops if a collection waits.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_safepoint() {
    gc::safepoint();
}

/// Calls a function that does not touch the heap.
///
/// # Safety
/// `function` may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_blocking(
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller vouches for it.
    gc::blocking(|| unsafe { function(argument) })
}
