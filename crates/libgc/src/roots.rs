//! Static data: that of the program and its libraries is found without being told; the rest is told here.

use crate::{start, vel};
use core::ffi::c_void;

/// Has the words from `start` up to `end` looked through.
#[unsafe(no_mangle)]
pub extern "C" fn GC_add_roots(start: *mut c_void, end: *mut c_void) {
    start::ensure();
    // SAFETY: the program vouches for the range.
    if unsafe { vel::vel_gc_roots_add(start, end) } != 0 {
        crate::say::line(&[b"libgc: GC_add_roots: out of memory"]);
        // Without them something would be freed that is in use.
        // SAFETY: abort has no preconditions.
        unsafe { libc::abort() }
    }
}

/// Undoes [`GC_add_roots`] of ranges within this one.
#[unsafe(no_mangle)]
pub extern "C" fn GC_remove_roots(start: *mut c_void, end: *mut c_void) {
    start::ensure();
    // SAFETY: any range may be named.
    unsafe { vel::vel_gc_roots_remove(start, end) };
}
