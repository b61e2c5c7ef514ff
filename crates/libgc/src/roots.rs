//! Static data: that of the program and its libraries is found without being told; the rest is told here.

use crate::{start, vel};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

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

/// Leaves static data from `start` up to `end` out.
#[unsafe(no_mangle)]
pub extern "C" fn GC_exclude_static_roots(start: *mut c_void, end: *mut c_void) {
    start::ensure();
    // SAFETY: any range may be named. Without memory it is looked through as before, which keeps more.
    unsafe { vel::vel_gc_roots_exclude(start, end) };
}

/// Undoes every [`GC_add_roots`]. Static data stays looked through.
#[unsafe(no_mangle)]
pub extern "C" fn GC_clear_roots() {
    start::ensure();
    // SAFETY: any range may be named.
    unsafe { vel::vel_gc_roots_remove(core::ptr::null(), core::ptr::without_provenance(usize::MAX)) };
}

/// `GC_no_dls`: asks not to look through libraries' data. They are: the setting is kept and told.
#[unsafe(no_mangle)]
pub static GC_no_dls: AtomicI32 = AtomicI32::new(0);

/// Kept, and changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_no_dls(on: c_int) {
    GC_no_dls.store(on, Relaxed);
}

/// What [`GC_set_no_dls`] set.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_no_dls() -> c_int {
    GC_no_dls.load(Relaxed)
}
