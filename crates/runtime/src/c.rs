//! The C library's malloc interface, with the C library's semantics.
//!
//! `malloc`, `calloc` and `free` inline the fast paths of `vellum_malloc`, which usually make no further
//! call. Argument checks follow glibc 2.36, and C23 where glibc defines nothing.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use vellum_malloc as front;

/// `malloc`.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
    front::malloc(bytes).cast()
}

/// `calloc`.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    front::calloc(count, bytes).cast()
}

/// `free`.
///
/// # Safety
/// The C standard's conditions for `free` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(address: *mut c_void) {
    // SAFETY: the block may be freed, by the `# Safety` section.
    unsafe { front::free(address.cast()) }
}

/// `cfree`, which the C library still exports but no longer declares.
///
/// # Safety
/// The conditions of `free` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(address: *mut c_void) {
    // SAFETY: the block may be freed, by the `# Safety` section.
    unsafe { front::free(address.cast()) }
}

/// C23 `free_sized`. Only the hardened mode checks the size.
///
/// # Safety
/// The conditions of `free` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(address: *mut c_void, bytes: usize) {
    // SAFETY: the block may be freed, by the `# Safety` section.
    unsafe { front::free_sized(address.cast(), bytes) }
}

/// C23 `free_aligned_sized`. The alignment is ignored.
///
/// # Safety
/// The conditions of `free` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(address: *mut c_void, _align: usize, bytes: usize) {
    // SAFETY: the block may be freed, by the `# Safety` section.
    unsafe { front::free_sized(address.cast(), bytes) }
}

/// `realloc`; a size of zero frees, as in glibc.
///
/// # Safety
/// The C standard's conditions for `realloc` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(address: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the block may be reallocated, by the `# Safety` section.
    unsafe { front::realloc(address.cast(), bytes) }.cast()
}

/// `reallocarray`.
///
/// # Safety
/// The conditions of `realloc` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(address: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the block may be reallocated, by the `# Safety` section.
    unsafe { front::reallocarray(address.cast(), count, bytes) }.cast()
}

/// `memalign`: rounds the alignment up to a power of two, as in glibc.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    match align.max(1).checked_next_power_of_two() {
        Some(align) => front::aligned(align, bytes).cast(),
        None => {
            front::set_errno(libc::EINVAL);
            null_mut()
        }
    }
}

/// `aligned_alloc`: another name of `memalign`, as in glibc 2.36.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    memalign(align, bytes)
}

/// `posix_memalign`.
///
/// # Safety
/// `result` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(result: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let errno = front::errno();
    let block = front::aligned(align, bytes);
    if block.is_null() {
        front::set_errno(errno);
        return libc::ENOMEM;
    }
    // SAFETY: `result` can be written, by the `# Safety` section.
    unsafe { result.write(block.cast()) };
    0
}

/// `valloc`.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(bytes: usize) -> *mut c_void {
    front::aligned(vellum_pages::PAGE, bytes).cast()
}

/// `pvalloc`: whole pages, at least one.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    front::aligned(vellum_pages::PAGE, vellum_sys::round_up(bytes.max(1), vellum_pages::PAGE)).cast()
}

/// `malloc_usable_size`.
///
/// # Safety
/// The block is null or may be freed; it is not freed here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(address: *mut c_void) -> usize {
    // SAFETY: the block is null or in use, by the `# Safety` section.
    unsafe { front::usable_size(address.cast()) }
}
