//! Types and their objects: allocation outside the inlined paths, sizes, and freeing.

use super::{object, refuse, refused};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use vellum_gc as gc;
use vellum_malloc as front;

/// A type.
///
/// # Safety
/// `pointers` has a bit for every word of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_type_of(bytes: usize, pointers: *const u64) -> *const gc::Layout {
    if bytes == 0 || bytes > gc::TYPE_MAX || pointers.is_null() {
        refuse(libc::EINVAL);
        return core::ptr::null();
    }
    // SAFETY: the caller vouches for the bitmap, of which only words with bits for the object are read.
    made(gc::type_of(bytes, |word| unsafe { pointers.add(word).read() }))
}

/// A type whose pointers a procedure names.
///
/// # Safety
/// The procedure may be called with every object of the type whenever collections happen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_type_by(
    procedure: Option<gc::TraceFn>,
    data: *mut c_void,
) -> *const gc::Layout {
    let Some(procedure) = procedure else {
        refuse(libc::EINVAL);
        return core::ptr::null();
    };
    // SAFETY: the caller vouches for it.
    made(unsafe { gc::type_by(procedure, data.expose_provenance()) })
}

/// A type, or null and `errno`.
fn made(layout: Option<&'static gc::Layout>) -> *const gc::Layout {
    if layout.is_none() {
        refuse(libc::ENOMEM);
    }
    layout.map_or(core::ptr::null(), core::ptr::from_ref)
}

/// An array of a type's elements.
///
/// # Safety
/// `layout` came from [`vel_gc_type_of`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_new_array(layout: *const gc::Layout, count: usize) -> *mut c_void {
    // SAFETY: types live for ever.
    object(gc::alloc_array(unsafe { &*layout }, count))
}

/// An object that is kept until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_alloc_uncollectable(bytes: usize) -> *mut c_void {
    object(gc::alloc_kept(bytes, false))
}

/// The same of one without pointers.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_alloc_atomic_uncollectable(bytes: usize) -> *mut c_void {
    object(gc::alloc_kept(bytes, true))
}

/// Has an object stay until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_keep(object: *mut c_void) -> c_int {
    match gc::keep(object.cast()) {
        Ok(()) => 0,
        Err(why) => refused(why),
    }
}

/// An aligned object.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_alloc_aligned(bytes: usize, align: usize, atomic: c_int) -> *mut c_void {
    object(gc::alloc_aligned(bytes, align, atomic != 0))
}

/// Changes an object's size.
///
/// # Safety
/// As `realloc` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_realloc(old: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes == 0 && !old.is_null() {
        // SAFETY: passed on.
        unsafe { vel_gc_free(old) };
        return null_mut();
    }
    // SAFETY: passed on.
    object(unsafe { gc::realloc(old.cast(), bytes) })
}

/// Gives an object back.
///
/// # Safety
/// Nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_free(old: *mut c_void) {
    // SAFETY: passed on.
    if !old.is_null() && unsafe { gc::free(old.cast()) }.is_err() {
        no_object("vel_gc_free", old);
    }
}

/// Gives an object back whose memory is left alone until the next collection.
///
/// # Safety
/// Nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_free_later(old: *mut c_void) {
    // SAFETY: passed on.
    if !old.is_null() && unsafe { gc::free_later(old.cast()) }.is_err() {
        no_object("vel_gc_free_later", old);
    }
}

/// Ends the process: the freed address is no object, so that nothing can be relied on.
#[cold]
fn no_object(function: &str, address: *const c_void) -> ! {
    let mut line = front::Line::new();
    line.text("vellum: ")
        .text(function)
        .text(": ")
        .hex(address as usize)
        .text(": not the start of a live object\n")
        .write();
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}

/// The slow path of `vel_gc_alloc`.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_slow(bytes: usize) -> *mut c_void {
    object(gc::alloc(bytes))
}

/// The slow path of `vel_gc_alloc_atomic`.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_slow_atomic(bytes: usize) -> *mut c_void {
    object(gc::alloc_atomic(bytes))
}

/// The slow path of `vel_gc_new`.
///
/// # Safety
/// `layout` came from [`vel_gc_type_of`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_slow_type(layout: *const gc::Layout) -> *mut c_void {
    // SAFETY: types live for ever.
    object(gc::alloc_typed(unsafe { &*layout }))
}

/// The start of the object that holds a byte.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_base(address: *const c_void) -> *mut c_void {
    gc::base(address.cast()).cast()
}

/// Bytes of room in an object.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_size(object: *const c_void) -> usize {
    gc::size(object.cast())
}
