//! Functions from which Vellum's own `libgc.so.1` builds the interface of the Boehm-Demers-Weiser collector:
//! events, disclaimers (callbacks that may keep a dead object), and stopping all threads or single ones.
//! They are declared in `include/vellum_gc.h`.

use super::refused;
use core::ffi::{c_int, c_void};
use vellum_gc as gc;
use vellum_malloc as front;

/// Sets the callback for events.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_event(hook: Option<gc::EventFn>) -> Option<gc::EventFn> {
    gc::on_event(hook)
}

/// Sets the hook that may prevent a collection before allocation starts it.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_need(hook: Option<gc::NeedFn>) -> Option<gc::NeedFn> {
    gc::on_need(hook)
}

/// Sets the filter for libraries' data.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_image(hook: Option<gc::ImageFn>) -> Option<gc::ImageFn> {
    gc::on_image(hook)
}

/// The number of finalizers that are due.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_due() -> usize {
    gc::due()
}

/// Runs the finalizers that are due, unless called from a finalizer.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_finalize_unless_within() -> usize {
    gc::finalize_unless_within()
}

/// Runs every registered finalizer.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_finalize_all() -> usize {
    gc::finalize_all()
}

/// Sets an object's disclaimer.
///
/// # Safety
/// The disclaimer may be called with the object and `data` at any time after the object has died.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_set_disclaimer(
    object: *mut c_void,
    disclaimer: Option<gc::DisclaimFn>,
    data: *mut c_void,
    follows: c_int,
) -> c_int {
    // SAFETY: the disclaimer may be called with the object and `data`, by the `# Safety` section.
    unsafe { gc::set_disclaimer(object.cast(), disclaimer, data.cast(), follows != 0) }
        .map_or_else(refused, |()| 0)
}

/// Returns 1 if an object was alive at the last collection, or is newer.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_is_marked(address: *const c_void) -> c_int {
    c_int::from(gc::is_marked(address.cast()))
}

/// Sets whether an object is needed, for its disclaimer.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_want(address: *const c_void, wanted: c_int) {
    gc::want(address.cast(), wanted != 0);
}

/// The sort of an object; `data` receives the data of its procedure.
///
/// # Safety
/// `data` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_sort(object: *const c_void, data: *mut *mut c_void) -> c_int {
    /// `VEL_GC_KEPT`.
    const KEPT: c_int = 4;
    let Some((sort, is_kept)) = gc::sort(object.cast()) else { return -1 };
    let (number, its_data) = match sort {
        gc::Sort::Untyped => (0, 0),
        gc::Sort::Atomic => (1, 0),
        gc::Sort::Typed => (2, 0),
        gc::Sort::Procedure(data) => (3, data),
    };
    // SAFETY: `data` is null or can be written, by the `# Safety` section.
    if let Some(data) = unsafe { data.as_mut() } {
        *data = core::ptr::with_exposed_provenance_mut(its_data);
    }
    number | if is_kept { KEPT } else { 0 }
}

/// Stops the world.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_stop_world() -> c_int {
    if gc::stop_world() { 0 } else { refused(gc::Refused::OutOfMemory) }
}

/// Lets the world continue.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_start_world() {
    gc::start_world();
}

/// The calling thread's handle.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_thread() -> *mut c_void {
    gc::handle()
}

/// Sets the end of a thread's stack.
///
/// # Safety
/// The stack can be read up to `end`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_set_stack_end(thread: *mut c_void, end: *const c_void) -> c_int {
    // SAFETY: the stack can be read up to `end`, by the `# Safety` section.
    if unsafe { gc::set_stack_end(thread, end) } { 0 } else { invalid() }
}

/// Sets the place that holds the end of the calling thread's stack.
///
/// # Safety
/// `place` holds the stack's end as long as the thread lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_stack_end_at(place: *const *const c_void) -> c_int {
    // SAFETY: `place` is valid as long as the thread lives, by the `# Safety` section.
    if unsafe { gc::stack_end_at(place.cast()) } { 0 } else { refused(gc::Refused::OutOfMemory) }
}

/// Suspends a thread.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_suspend(thread: libc::pthread_t) -> c_int {
    if gc::suspend(thread as usize) { 0 } else { invalid() }
}

/// Resumes a suspended thread.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_resume(thread: libc::pthread_t) -> c_int {
    if gc::resume(thread as usize) { 0 } else { invalid() }
}

/// The signal that stops threads.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_signal() -> c_int {
    gc::signal()
}

/// Sets the signal that stops threads.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_signal(signal: c_int) -> c_int {
    if gc::set_signal(signal) {
        return 0;
    }
    front::set_errno(if (1..=libc::SIGRTMAX()).contains(&signal) { libc::EBUSY } else { libc::EINVAL });
    -1
}

fn invalid() -> c_int {
    refused(gc::Refused::NoObject)
}
