//! The functions of `vellum_gc.h` for threads: registration, roots, safepoints and blocking regions.

use super::{refuse, refused};
use core::ffi::{c_int, c_void};
use vellum_gc as gc;

/// Within a blocking region: calls `function(argument)`, which may touch the heap.
///
/// # Safety
/// `function` may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_active(
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> *mut c_void {
    // SAFETY: `function` may be called with `argument`, by the `# Safety` section.
    gc::active(|| unsafe { function(argument) })
}

/// Registers the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_thread_enter() -> c_int {
    if gc::enter() { 0 } else { refuse(libc::ENOMEM) }
}

/// Adds roots of the calling thread.
///
/// # Safety
/// The range can be read until it is removed or the thread ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_thread_roots_add(start: *const c_void, end: *const c_void) -> c_int {
    // SAFETY: the range can be read that long, by the `# Safety` section.
    unsafe { gc::add_thread_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Stops if a collection waits.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_safepoint() {
    gc::safepoint();
}

/// Calls a function that does not touch the heap; collections do not wait for it.
///
/// # Safety
/// `function` may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_blocking(
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> *mut c_void {
    // SAFETY: `function` may be called with `argument`, by the `# Safety` section.
    gc::blocking(|| unsafe { function(argument) })
}
