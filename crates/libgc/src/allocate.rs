//! Allocating, resizing, freeing and finding objects.
//!
//! A C program may keep an object alive by nothing but a pointer just past its end. Each object is therefore
//! a byte longer than requested while interior pointers count (`GC_all_interior_pointers`). libgc does the
//! same: there, too, a request of 16 bytes takes 32.

use crate::headers::unmarked;
use crate::kinds::{NORMAL, POINTER_FREE};
use crate::settings::out_of_memory;
use crate::state::is_plain;
use crate::variables::{GC_all_interior_pointers, finds_leaks};
use crate::vel::GRANULE;
use crate::{leaks, start, vel};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;

/// Where `GC_malloc_many` stops: about as much as libgc hands out at once.
const MANY_BYTES: usize = 4096;
const PAGE: usize = 4096;

/// `bytes` and the byte that catches a pointer past the end.
#[inline(always)]
pub(crate) fn with_end(bytes: usize) -> usize {
    bytes.saturating_add(usize::from(
        GC_all_interior_pointers.load(core::sync::atomic::Ordering::Relaxed) != 0,
    ))
}

/// `object`, or what the program's procedure for such a case returns.
#[inline(always)]
fn or_out_of_memory(object: *mut c_void, bytes: usize) -> *mut c_void {
    if object.is_null() { out_of_memory(bytes) } else { object }
}

/// An object of `bytes` bytes, cleared, in which any word may be a pointer.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc(bytes: usize) -> *mut c_void {
    if !is_plain() {
        return leaks::made(start::then(|| or_out_of_memory(vel::alloc(with_end(bytes).max(1)), bytes)));
    }
    or_out_of_memory(vel::alloc(with_end(bytes).max(1)), bytes)
}

/// An object without pointers, not cleared.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_atomic(bytes: usize) -> *mut c_void {
    if !is_plain() {
        return leaks::made(start::then(|| {
            or_out_of_memory(unmarked(vel::alloc_atomic(with_end(bytes).max(1))), bytes)
        }));
    }
    or_out_of_memory(vel::alloc_atomic(with_end(bytes).max(1)), bytes)
}

/// As [`GC_malloc`]: that a program keeps a pointer to the first bytes is no help here.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_ignore_off_page(bytes: usize) -> *mut c_void {
    GC_malloc(bytes)
}

/// As [`GC_malloc_atomic`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_atomic_ignore_off_page(bytes: usize) -> *mut c_void {
    GC_malloc_atomic(bytes)
}

/// As [`GC_malloc`]: changes are not announced.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_stubborn(bytes: usize) -> *mut c_void {
    GC_malloc(bytes)
}

/// Says nothing to a collector that sees writes by itself.
#[unsafe(no_mangle)]
pub extern "C" fn GC_change_stubborn(_object: *const c_void) {}

/// Says nothing to a collector that sees writes by itself.
#[unsafe(no_mangle)]
pub extern "C" fn GC_end_stubborn_change(_object: *const c_void) {}

/// Has an object stay until it is freed; null, and it is gone, if there is no memory for that.
pub(crate) fn kept(object: *mut c_void, bytes: usize) -> *mut c_void {
    if object.is_null() {
        return out_of_memory(bytes);
    }
    // SAFETY: the start of an object made just now.
    if unsafe { vel::vel_gc_keep(object) } != 0 {
        // SAFETY: nobody else knows it.
        unsafe { vel::vel_gc_free(object) };
        return out_of_memory(bytes);
    }
    object
}

/// An object that stays until it is freed, and keeps what it refers to.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_uncollectable(bytes: usize) -> *mut c_void {
    start::ensure();
    // SAFETY: any size may be asked for.
    or_out_of_memory(unsafe { vel::vel_gc_alloc_uncollectable(with_end(bytes).max(1)) }, bytes)
}

/// An object without pointers that stays until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_atomic_uncollectable(bytes: usize) -> *mut c_void {
    start::ensure();
    // SAFETY: any size may be asked for.
    let object = unsafe { vel::vel_gc_alloc_atomic_uncollectable(with_end(bytes).max(1)) };
    or_out_of_memory(unmarked(object), bytes)
}

/// An object aligned to `align` bytes, a power of two up to 16 KiB.
#[unsafe(no_mangle)]
pub extern "C" fn GC_memalign(align: usize, bytes: usize) -> *mut c_void {
    start::ensure();
    if align <= 16 {
        return GC_malloc(bytes);
    }
    leaks::made(or_out_of_memory(
        // SAFETY: an alignment that is not served gives null.
        unsafe { vel::vel_gc_alloc_aligned(with_end(bytes).max(1), align, 0) },
        bytes,
    ))
}

/// The same as `posix_memalign`.
///
/// # Safety
/// `result` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_posix_memalign(result: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return libc::EINVAL;
    }
    let object = GC_memalign(align, bytes);
    if object.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller vouches for it.
    unsafe { result.write(object) };
    0
}

/// Changes an object's size, moving it if it must. Null allocates, no bytes free.
///
/// # Safety
/// Nobody uses the old object any more if it has moved.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_realloc(object: *mut c_void, bytes: usize) -> *mut c_void {
    if object.is_null() {
        return GC_malloc(bytes);
    }
    if bytes == 0 {
        // SAFETY: the caller's object.
        unsafe { vel::vel_gc_free(object) };
        return null_mut();
    }
    // SAFETY: the caller's object.
    let new = or_out_of_memory(unsafe { vel::vel_gc_realloc(object, with_end(bytes)) }, bytes);
    if core::ptr::eq(new, object) { new } else { leaks::made(new) }
}

/// Gives an object back now; null is let pass.
///
/// # Safety
/// Nobody uses the object any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_free(object: *mut c_void) {
    // SAFETY: the caller's object.
    unsafe { vel::vel_gc_free(object) };
}

/// Gives an object back, its first `bytes` bytes overwritten by zeros; null is let pass.
///
/// # Safety
/// As [`GC_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_freezero(object: *mut c_void, bytes: usize) {
    // SAFETY: the caller's object, of which that many bytes at most are there.
    unsafe {
        wipe(object, bytes.min(GC_size(object)));
        GC_free(object);
    }
}

/// Overwrites `bytes` bytes by zeros, although nobody reads them.
///
/// # Safety
/// They can be written.
pub(crate) unsafe fn wipe(object: *mut c_void, bytes: usize) {
    // SAFETY: by this function's condition.
    unsafe { object.write_bytes(0, bytes) };
    core::hint::black_box(object);
}

/// [`GC_realloc`]; if there is no memory, the object is freed.
///
/// # Safety
/// As there, and nobody uses the old object any more in either case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_reallocf(object: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: passed on.
    unsafe {
        let new = GC_realloc(object, bytes);
        if new.is_null() && bytes != 0 {
            GC_free(object);
        }
        new
    }
}

/// An object at the start of a page.
#[unsafe(no_mangle)]
pub extern "C" fn GC_valloc(bytes: usize) -> *mut c_void {
    GC_memalign(PAGE, bytes)
}

/// The same, of whole pages.
#[unsafe(no_mangle)]
pub extern "C" fn GC_pvalloc(bytes: usize) -> *mut c_void {
    match bytes.max(1).checked_next_multiple_of(PAGE) {
        Some(bytes) => GC_memalign(PAGE, bytes),
        None => out_of_memory(bytes),
    }
}

/// Objects of one size, chained by their first words.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_many(bytes: usize) -> *mut c_void {
    if !is_plain() {
        start::ensure();
        if finds_leaks() {
            return alone(bytes, 1);
        }
    }
    let each = with_end(bytes).max(size_of::<usize>());
    let mut first = null_mut::<c_void>();
    let mut left = (MANY_BYTES / each).max(1);
    while left > 0 {
        let (chain, count) = vel::chain(each, left, first);
        if count > 0 {
            (first, left) = (chain, left - count);
            continue;
        }
        let object = vel::alloc(each);
        if object.is_null() {
            break;
        }
        // SAFETY: a word at least is there.
        unsafe { object.cast::<*mut c_void>().write(first) };
        (first, left) = (object, left - 1);
    }
    or_out_of_memory(first, bytes)
}

/// Objects without pointers of one size, chained by their first words. As with libgc nothing is kept by such
/// a chain but its first object: who holds one while there is a collection has its words marked, or drops it.
fn atomic_many(bytes: usize) -> *mut c_void {
    let each = with_end(bytes).max(size_of::<usize>());
    // Until all are there they are kept by this.
    let mut objects = [null_mut::<c_void>(); MANY_BYTES / GRANULE];
    let mut count = 0;
    for object in &mut objects[..(MANY_BYTES / each).clamp(1, MANY_BYTES / GRANULE)] {
        *object = vel::alloc_atomic(each);
        if object.is_null() {
            break;
        }
        count += 1;
    }
    // The compiler must not have kept them elsewhere: collections scan the stack.
    let objects = core::hint::black_box(&objects);
    let mut first = null_mut::<c_void>();
    for &object in objects[..count].iter().rev() {
        // SAFETY: a word at least is there.
        unsafe { object.cast::<*mut c_void>().write(first) };
        first = object;
    }
    or_out_of_memory(first, bytes)
}

/// Stores such a list at `result`.
///
/// # Safety
/// `result` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_generic_malloc_many(bytes: usize, kind: c_int, result: *mut *mut c_void) {
    let list = match usize::try_from(kind) {
        Ok(NORMAL) if is_plain() => GC_malloc_many(bytes),
        Ok(POINTER_FREE) if is_plain() => atomic_many(bytes),
        // A chain is kept by its words: a kind that does not name them all has its objects one at a time.
        _ => alone(bytes, kind),
    };
    // SAFETY: the caller vouches for it.
    unsafe { result.write(list) };
}

fn alone(bytes: usize, kind: c_int) -> *mut c_void {
    let object = crate::kinds::GC_generic_malloc(bytes.max(size_of::<usize>()), kind);
    if !object.is_null() {
        // SAFETY: a word at least is there.
        unsafe { object.cast::<usize>().write(0) };
    }
    object
}

/// A copy of a C string, without pointers.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_strdup(text: *const c_char) -> *mut c_char {
    // SAFETY: passed on.
    unsafe { copy(text, usize::MAX, |bytes| GC_malloc_atomic(bytes)) }
}

/// A copy of a C string's first `bytes` bytes at most, with a zero behind.
///
/// # Safety
/// `text` is null, a C string, or has that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_strndup(text: *const c_char, bytes: usize) -> *mut c_char {
    // SAFETY: passed on.
    unsafe { copy(text, bytes, |bytes| GC_malloc_atomic(bytes)) }
}

/// A copy of a C string's first `bytes` bytes at most, `usize::MAX` for all, in an object that `make` makes.
///
/// # Safety
/// As [`GC_strndup`].
pub(crate) unsafe fn copy(
    text: *const c_char,
    bytes: usize,
    make: impl FnOnce(usize) -> *mut c_void,
) -> *mut c_char {
    if text.is_null() {
        return null_mut();
    }
    // SAFETY: it ends within that many bytes, or has as many.
    let length = unsafe { if bytes == usize::MAX { libc::strlen(text) } else { libc::strnlen(text, bytes) } };
    let copy = make(length + 1).cast::<c_char>();
    if !copy.is_null() {
        // SAFETY: one byte more than the text has is there.
        unsafe {
            copy.copy_from_nonoverlapping(text, length);
            copy.add(length).write(0);
        }
    }
    copy
}

/// A copy of a wide string.
///
/// # Safety
/// `text` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_wcsdup(text: *const libc::wchar_t) -> *mut libc::wchar_t {
    // SAFETY: passed on.
    unsafe { copy_wide(text, |bytes| GC_malloc_atomic(bytes)) }
}

/// A copy of a wide string in an object that `make` makes.
///
/// # Safety
/// `text` ends with a zero.
pub(crate) unsafe fn copy_wide(
    text: *const libc::wchar_t,
    make: impl FnOnce(usize) -> *mut c_void,
) -> *mut libc::wchar_t {
    // SAFETY: the caller vouches for the end.
    let length = unsafe { libc::wcslen(text) } + 1;
    let copy = make(length * size_of::<libc::wchar_t>()).cast::<libc::wchar_t>();
    if !copy.is_null() {
        // SAFETY: as many are there.
        unsafe { copy.copy_from_nonoverlapping(text, length) };
    }
    copy
}

/// The start of the object that holds `address`; null for none.
#[unsafe(no_mangle)]
pub extern "C" fn GC_base(address: *mut c_void) -> *mut c_void {
    // SAFETY: any address may be asked about.
    unsafe { vel::vel_gc_base(address) }
}

/// Bytes of room in the object that starts here.
#[unsafe(no_mangle)]
pub extern "C" fn GC_size(object: *const c_void) -> usize {
    // SAFETY: any address may be asked about.
    unsafe { vel::vel_gc_size(object) }
}

/// Whether `address` is within an object.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_heap_ptr(address: *const c_void) -> c_int {
    // SAFETY: any address may be asked about.
    c_int::from(!unsafe { vel::vel_gc_base(address) }.is_null())
}

/// Says nothing: interior pointers of every displacement count.
#[unsafe(no_mangle)]
pub extern "C" fn GC_register_displacement(_bytes: usize) {}

/// Stores a pointer into an object.
///
/// # Safety
/// `place` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_ptr_store_and_dirty(place: *mut c_void, value: *const c_void) {
    // SAFETY: the caller vouches for it.
    unsafe { place.cast::<*const c_void>().write(value) };
}
