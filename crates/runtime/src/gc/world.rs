//! Functions on which other collectors' interfaces are built (`libgc.so.1`): events, disclaimers, stopping
//! the world and single threads. Declared in `include/vellum_gc.h`.

use super::refused;
use core::ffi::{c_int, c_void};
use vellum_gc as gc;
use vellum_malloc as front;

/// Sets the callback for events.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_event(hook: Option<gc::EventFn>) -> Option<gc::EventFn> {
    gc::on_event(hook)
}

/// Sets what is asked before a collection that allocation wants.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_need(hook: Option<gc::NeedFn>) -> Option<gc::NeedFn> {
    gc::on_need(hook)
}

/// Sets what is asked about libraries' data.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_image(hook: Option<gc::ImageFn>) -> Option<gc::ImageFn> {
    gc::on_image(hook)
}

/// Finalizers that are due.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_due() -> usize {
    gc::due()
}

/// Runs the finalizers that are due, unless within one.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_finalize_unless_within() -> usize {
    gc::finalize_unless_within()
}

/// Runs every finalizer there is.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_finalize_all() -> usize {
    gc::finalize_all()
}

/// Sets an object's disclaimer.
///
/// # Safety
/// It may be called with the object and `data` at any time after the object has died.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_set_disclaimer(
    object: *mut c_void,
    disclaimer: Option<gc::DisclaimFn>,
    data: *mut c_void,
    follows: c_int,
) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::set_disclaimer(object.cast(), disclaimer, data.cast(), follows != 0) }
        .map_or_else(refused, |()| 0)
}

/// Whether an object is alive, as far as is known.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_is_marked(address: *const c_void) -> c_int {
    c_int::from(gc::is_marked(address.cast()))
}

/// Says for an object's disclaimer whether the object is wanted.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_want(address: *const c_void, wanted: c_int) {
    gc::want(address.cast(), wanted != 0);
}

/// The sort of an object.
///
/// # Safety
/// `data` is null or may be written.
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
    // SAFETY: the caller vouches for it.
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

/// Lets it go on.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_start_world() {
    gc::start_world();
}

/// The calling thread's handle.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_thread() -> *mut c_void {
    gc::handle()
}

/// Says where a thread's stack ends.
///
/// # Safety
/// The stack may be read up to there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_set_stack_end(thread: *mut c_void, end: *const c_void) -> c_int {
    // SAFETY: passed on.
    if unsafe { gc::set_stack_end(thread, end.expose_provenance()) } { 0 } else { invalid() }
}

/// Says where it is said where the calling thread's stack ends.
///
/// # Safety
/// `place` holds that as long as the thread lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_stack_end_at(place: *const *const c_void) -> c_int {
    // SAFETY: passed on.
    if unsafe { gc::stack_end_at(place.cast()) } { 0 } else { refused(gc::Refused::OutOfMemory) }
}

/// Suspends a thread.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_suspend(thread: libc::pthread_t) -> c_int {
    if gc::suspend(thread as usize) { 0 } else { invalid() }
}

/// Lets a suspended thread go on.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_resume(thread: libc::pthread_t) -> c_int {
    if gc::resume(thread as usize) { 0 } else { invalid() }
}

/// The signal that stops threads.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_signal() -> c_int {
    gc::signal()
}

/// Has threads stopped by another.
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
