//! The functions of `vellum_gc.h` for types and objects: allocation that is not inlined, sizes, freeing.

use super::{object, refuse, refused};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use vellum_gc as gc;
use vellum_malloc as front;

/// Makes a type.
///
/// # Safety
/// `pointers` has a bit for every word of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_type_of(bytes: usize, pointers: *const u64) -> *const gc::Layout {
    if bytes == 0 || bytes > gc::TYPE_MAX || pointers.is_null() {
        refuse(libc::EINVAL);
        return core::ptr::null();
    }
    // SAFETY: `pointers` has a bit for every word (`# Safety`), and only words with such bits are read.
    made(gc::type_of(bytes, |word| unsafe { pointers.add(word).read() }))
}

/// Makes a type whose pointers a procedure reports.
///
/// # Safety
/// The procedure may be called with every object of the type during any collection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_type_by(
    procedure: Option<gc::TraceFn>,
    data: *mut c_void,
) -> *const gc::Layout {
    let Some(procedure) = procedure else {
        refuse(libc::EINVAL);
        return core::ptr::null();
    };
    // SAFETY: the procedure may be called with every object of the type, by the `# Safety` section.
    made(unsafe { gc::type_by(procedure, data.expose_provenance()) })
}

/// Returns the type, or null with `errno`.
fn made(layout: Option<&'static gc::Layout>) -> *const gc::Layout {
    if layout.is_none() {
        refuse(libc::ENOMEM);
    }
    layout.map_or(core::ptr::null(), core::ptr::from_ref)
}

/// Allocates an array of a type's elements.
///
/// # Safety
/// [`vel_gc_type_of`] returned `layout`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_new_array(layout: *const gc::Layout, count: usize) -> *mut c_void {
    // SAFETY: `layout` is a type (`# Safety`), and types are never freed.
    object(gc::alloc_array(unsafe { &*layout }, count))
}

/// Allocates an object that stays until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_alloc_uncollectable(bytes: usize) -> *mut c_void {
    object(gc::alloc_kept(bytes, false))
}

/// Allocates an object without pointers that stays until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_alloc_atomic_uncollectable(bytes: usize) -> *mut c_void {
    object(gc::alloc_kept(bytes, true))
}

/// Makes an object stay until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_keep(object: *mut c_void) -> c_int {
    match gc::keep(object.cast()) {
        Ok(()) => 0,
        Err(why) => refused(why),
    }
}

/// Allocates an aligned object.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_alloc_aligned(bytes: usize, align: usize, atomic: c_int) -> *mut c_void {
    object(gc::alloc_aligned(bytes, align, atomic != 0))
}

/// Resizes an object.
///
/// # Safety
/// The conditions of `realloc` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_realloc(old: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes == 0 && !old.is_null() {
        // SAFETY: the object is not used any more, by the `# Safety` section.
        unsafe { vel_gc_free(old) };
        return null_mut();
    }
    // SAFETY: the old object is not used after it has moved, by the `# Safety` section.
    object(unsafe { gc::realloc(old.cast(), bytes) })
}

/// Frees an object.
///
/// # Safety
/// The object is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_free(old: *mut c_void) {
    // SAFETY: the object is not used any more, by the `# Safety` section.
    if !old.is_null() && unsafe { gc::free(old.cast()) }.is_err() {
        no_object("vel_gc_free", old);
    }
}

/// Frees an object whose memory is not reused before the next collection.
///
/// # Safety
/// The object is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_free_later(old: *mut c_void) {
    // SAFETY: the object is not used any more, by the `# Safety` section.
    if !old.is_null() && unsafe { gc::free_later(old.cast()) }.is_err() {
        no_object("vel_gc_free_later", old);
    }
}

/// Ends the process: the freed address is not an object, so the program's state is invalid.
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
/// [`vel_gc_type_of`] returned `layout`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_slow_type(layout: *const gc::Layout) -> *mut c_void {
    // SAFETY: `layout` is a type (`# Safety`), and types are never freed.
    object(gc::alloc_typed(unsafe { &*layout }))
}

/// The start of the object that contains a byte.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_base(address: *const c_void) -> *mut c_void {
    gc::base(address.cast()).cast()
}

/// The usable bytes of an object.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_size(object: *const c_void) -> usize {
    gc::size(object.cast())
}
