//! The functions of `vellum_gc.h` for dead objects: finalizers, links (weak pointers) and ephemerons.

use super::refused;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use vellum_gc as gc;

/// Sets the hook that is called when finalizers are due.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_due(hook: Option<gc::ToldFn>) -> Option<gc::ToldFn> {
    gc::on_due(hook)
}

/// Sets an object's ephemeron.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_ephemeron(key: *mut c_void, value: *mut c_void) -> c_int {
    gc::set_ephemeron(key.cast(), value.cast()).map_or_else(refused, |()| 0)
}

/// An object's ephemeron.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_ephemeron(key: *const c_void) -> *mut c_void {
    gc::ephemeron(key.cast()).cast()
}

/// The order that corresponds to a number of the header.
fn order(unordered: c_int) -> gc::Order {
    match unordered {
        0 => gc::Order::Ordered,
        2 => gc::Order::IgnoringItself,
        3 => gc::Order::Last,
        _ => gc::Order::Unordered,
    }
}

/// Sets a finalizer.
///
/// # Safety
/// The finalizer may be called with the object and `data` at any time after the object has died.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_set_finalizer(
    object: *mut c_void,
    finalizer: Option<gc::Function>,
    data: *mut c_void,
    unordered: c_int,
) -> c_int {
    // SAFETY: the finalizer may be called with the object and `data`, by the `# Safety` section.
    let set = unsafe { gc::set_finalizer(object.cast(), finalizer, data.cast(), order(unordered)) };
    set.map_or_else(refused, |_| 0)
}

/// Sets a finalizer and stores the old one.
///
/// # Safety
/// The conditions of [`vel_gc_set_finalizer`] apply; the two places are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_replace_finalizer(
    object: *mut c_void,
    finalizer: Option<gc::Function>,
    data: *mut c_void,
    unordered: c_int,
    old_finalizer: *mut Option<gc::Function>,
    old_data: *mut *mut c_void,
) -> c_int {
    // SAFETY: the finalizer may be called with the object and `data`, by the `# Safety` section.
    match unsafe { gc::set_finalizer(object.cast(), finalizer, data.cast(), order(unordered)) } {
        Ok(before) => {
            // SAFETY: both places are null or can be written, by the `# Safety` section.
            unsafe {
                if let Some(place) = old_finalizer.as_mut() {
                    *place = before.map(|(function, _)| function);
                }
                if let Some(place) = old_data.as_mut() {
                    *place = before.map_or(null_mut(), |(_, data)| data.cast());
                }
            }
            0
        }
        Err(why) => refused(why),
    }
}

/// Runs the finalizers that are due.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_finalize() -> usize {
    gc::finalize()
}

/// Chooses whether finalizers run on demand only.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_finalize_on_demand(on: c_int) {
    gc::finalize_on_demand(on != 0);
}

/// Makes a link.
///
/// # Safety
/// The link may be written until its object dies or the link is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_link(
    link: *mut *mut c_void,
    object: *mut c_void,
    after_finalizer: c_int,
) -> c_int {
    // SAFETY: the link may be written that long, by the `# Safety` section.
    let made = unsafe { gc::link(link.cast(), object.cast(), after_finalizer != 0) };
    made.map_or_else(refused, |()| 0)
}

/// Removes a link.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_unlink(link: *mut *mut c_void) -> *mut c_void {
    gc::unlink(link.cast()).cast()
}

/// Moves a link.
///
/// # Safety
/// The conditions of [`vel_gc_link`] apply to `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_move_link(from: *mut *mut c_void, to: *mut *mut c_void) -> c_int {
    // SAFETY: `to` may be written until its object dies, by the `# Safety` section.
    unsafe { gc::move_link(from.cast(), to.cast()) }.map_or_else(refused, c_int::from)
}
