//! Collections: requests, hooks and limits; the heap's counters and checks.

use super::refuse;
use core::ffi::{c_char, c_int, c_uint, c_void};
use vellum_gc as gc;
use vellum_malloc as front;

/// Sets what is called when a collection begins.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_begin(hook: Option<gc::ToldFn>) -> Option<gc::ToldFn> {
    gc::on_begin(hook)
}

/// Collects now.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_collect() -> c_int {
    if gc::collect() { 0 } else { -1 }
}

/// Collects in idle time.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_idle(us: c_uint) -> c_int {
    c_int::from(gc::idle(u64::from(us) * 1000))
}

/// Sets what is called after each pause.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_pause(hook: Option<gc::PauseFn>) -> Option<gc::PauseFn> {
    gc::on_pause(hook)
}

/// Holds collection off.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_hold() {
    gc::hold(true);
}

/// Lets collection on again.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_let() {
    gc::hold(false);
}

/// Sets the heap's limit.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_limit(bytes: usize) {
    gc::set_limit(if bytes == 0 { usize::MAX } else { bytes });
}

/// Has the heap not collect before it has this size.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_least(bytes: usize) {
    gc::set_least(bytes);
}

/// Sets the maximum of the heap with its metadata.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_max(bytes: usize) -> c_int {
    if bytes != 0 && bytes < gc::Config::MAX_LEAST {
        return refuse(libc::EINVAL);
    }
    gc::set_max(if bytes == 0 { usize::MAX } else { bytes });
    0
}

/// Sets what is called when there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_full(hook: Option<gc::FullFn>) -> Option<gc::FullFn> {
    gc::on_full(hook)
}

vellum_wire::same_as_stats!(gc::Stats);

/// Fills in the counters.
///
/// # Safety
/// `stats` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_get_stats(stats: *mut gc::Stats, bytes: usize) {
    let now = gc::stats();
    let bytes = bytes.min(size_of::<gc::Stats>());
    // SAFETY: as many bytes as both have.
    unsafe { stats.cast::<u8>().copy_from_nonoverlapping((&raw const now).cast(), bytes) };
}

/// Visits every object.
///
/// # Safety
/// `visit` may be called with every object and `argument`, with the world stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_walk(
    visit: unsafe extern "C" fn(*mut c_void, usize, *mut c_void),
    argument: *mut c_void,
) {
    // SAFETY: the caller vouches for it.
    gc::walk(|object, bytes| unsafe { visit(object.cast(), bytes, argument) });
}

/// Checks every invariant. The names of those that are broken are static, and a broken heap prints them too.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_validate() -> *const c_char {
    let Err(broken) = gc::validate() else { return core::ptr::null() };
    let mut line = front::Line::new();
    line.text("vellum: broken: ").text(broken).text("\n").write();
    c"an invariant of the heap is broken; it was written to standard error".as_ptr()
}
