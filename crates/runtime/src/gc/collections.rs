//! The functions of `vellum_gc.h` for collections (requests, hooks, limits), counters and checks.

use super::refuse;
use core::ffi::{c_char, c_int, c_uint, c_void};
use vellum_gc as gc;
use vellum_malloc as front;

/// Sets the hook for the begin of a collection.
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

/// Sets the hook that is called after each pause.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_pause(hook: Option<gc::PauseFn>) -> Option<gc::PauseFn> {
    gc::on_pause(hook)
}

/// Holds collection off.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_hold() {
    gc::hold(true);
}

/// Undoes one `vel_gc_hold`.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_let() {
    gc::hold(false);
}

/// Sets the heap's limit.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_limit(bytes: usize) {
    gc::set_limit(if bytes == 0 { usize::MAX } else { bytes });
}

/// Prevents collections below this heap size.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_least(bytes: usize) {
    gc::set_least(bytes);
}

/// Sets the maximum of the heap including its metadata.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_max(bytes: usize) -> c_int {
    if bytes != 0 && bytes < gc::Config::MAX_LEAST {
        return refuse(libc::EINVAL);
    }
    gc::set_max(if bytes == 0 { usize::MAX } else { bytes });
    0
}

/// Sets the hook that is called when there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_full(hook: Option<gc::FullFn>) -> Option<gc::FullFn> {
    gc::on_full(hook)
}

vellum_wire::same_as_stats!(gc::Stats);

/// Stores the first `bytes` bytes of the counters.
///
/// # Safety
/// `stats` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_get_stats(stats: *mut gc::Stats, bytes: usize) {
    let now = gc::stats();
    let bytes = bytes.min(size_of::<gc::Stats>());
    // SAFETY: `stats` has room for `bytes` bytes (`# Safety`), which is limited to the size of `now`.
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
    // SAFETY: `visit` may be called with every object and `argument`, by the `# Safety` section.
    gc::walk(|object, bytes| unsafe { visit(object.cast(), bytes, argument) });
}

/// Checks every invariant; prints the first broken one to standard error.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_validate() -> *const c_char {
    let Err(broken) = gc::validate() else { return core::ptr::null() };
    let mut line = front::Line::new();
    line.text("vellum: broken: ").text(broken).text("\n").write();
    c"an invariant of the heap is broken; it was written to standard error".as_ptr()
}
