//! Allocating, resizing, freeing and finding objects.
//!
//! A C program may keep an object alive by nothing but a pointer just past its end. Each object is therefore
//! a byte longer than requested while interior pointers count (`GC_all_interior_pointers`). As in libgc, a
//! request of 16 bytes thus takes 32.

use crate::forms::{nothing, passes, same};
use crate::headers::unmarked;
use crate::kinds::{NORMAL, POINTER_FREE};
use crate::settings::out_of_memory;
use crate::state::is_plain;
use crate::variables::{GC_all_interior_pointers, finds_leaks};
use crate::vel::GRANULE;
use crate::{leaks, start, vel};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;

/// Bytes after which `GC_malloc_many` stops; libgc hands out about as much at once.
const MANY_BYTES: usize = 4096;
const PAGE: usize = 4096;

/// `bytes`, and one more byte for pointers just past the end.
#[inline(always)]
pub(crate) fn with_end(bytes: usize) -> usize {
    bytes.saturating_add(usize::from(
        GC_all_interior_pointers.load(core::sync::atomic::Ordering::Relaxed) != 0,
    ))
}

/// `object`, or the result of the program's out-of-memory procedure.
#[inline(always)]
fn or_out_of_memory(object: *mut c_void, bytes: usize) -> *mut c_void {
    if object.is_null() { out_of_memory(bytes) } else { object }
}

/// Allocates an object of `bytes` bytes, cleared, in which any word may be a pointer.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc(bytes: usize) -> *mut c_void {
    if !is_plain() {
        return leaks::made(start::then(|| or_out_of_memory(vel::alloc(with_end(bytes).max(1)), bytes)));
    }
    or_out_of_memory(vel::alloc(with_end(bytes).max(1)), bytes)
}

/// Allocates an object without pointers, not cleared.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_atomic(bytes: usize) -> *mut c_void {
    if !is_plain() {
        return leaks::made(start::then(|| {
            or_out_of_memory(unmarked(vel::alloc_atomic(with_end(bytes).max(1))), bytes)
        }));
    }
    or_out_of_memory(vel::alloc_atomic(with_end(bytes).max(1)), bytes)
}

same! {
    /// Like [`GC_malloc`]: a pointer to the first bytes has no advantage here.
    GC_malloc_ignore_off_page(bytes: usize) -> *mut c_void = GC_malloc;
    /// Like [`GC_malloc_atomic`].
    GC_malloc_atomic_ignore_off_page(bytes: usize) -> *mut c_void = GC_malloc_atomic;
    /// Like [`GC_malloc`]: changes need no announcement.
    GC_malloc_stubborn(bytes: usize) -> *mut c_void = GC_malloc;
}

nothing! {
    /// Has no effect: the collector detects writes.
    GC_change_stubborn(*const c_void);
    /// Has no effect: the collector detects writes.
    GC_end_stubborn_change(*const c_void);
    /// Has no effect: interior pointers with any displacement count.
    GC_register_displacement(usize);
}

/// Makes an object uncollectable. Without memory for that, the object is freed and the result is null.
pub(crate) fn kept(object: *mut c_void, bytes: usize) -> *mut c_void {
    if object.is_null() {
        return out_of_memory(bytes);
    }
    // SAFETY: `object` is the start of a new object, which only the caller has.
    if unsafe { vel::vel_gc_keep(object) } != 0 {
        // SAFETY: the object is new, and no pointer to it has been returned.
        unsafe { vel::vel_gc_free(object) };
        return out_of_memory(bytes);
    }
    object
}

/// Allocates an object that stays until it is freed, together with its referents.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_uncollectable(bytes: usize) -> *mut c_void {
    start::ensure();
    // SAFETY: the function accepts any size.
    or_out_of_memory(unsafe { vel::vel_gc_alloc_uncollectable(with_end(bytes).max(1)) }, bytes)
}

/// Allocates an object without pointers that stays until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_atomic_uncollectable(bytes: usize) -> *mut c_void {
    start::ensure();
    // SAFETY: the function accepts any size.
    let object = unsafe { vel::vel_gc_alloc_atomic_uncollectable(with_end(bytes).max(1)) };
    or_out_of_memory(unmarked(object), bytes)
}

/// Allocates an object aligned to `align` bytes, a power of two up to 16 KiB.
#[unsafe(no_mangle)]
pub extern "C" fn GC_memalign(align: usize, bytes: usize) -> *mut c_void {
    start::ensure();
    if align <= 16 {
        return GC_malloc(bytes);
    }
    leaks::made(or_out_of_memory(
        // SAFETY: the function returns null for unsupported alignments.
        unsafe { vel::vel_gc_alloc_aligned(with_end(bytes).max(1), align, 0) },
        bytes,
    ))
}

/// [`GC_memalign`] with the interface of `posix_memalign`.
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
    // SAFETY: `result` can be written, by the `# Safety` section.
    unsafe { result.write(object) };
    0
}

/// Resizes an object, moving it if necessary. A null pointer allocates, a size of 0 frees.
///
/// # Safety
/// The old object is not used after it has moved.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_realloc(object: *mut c_void, bytes: usize) -> *mut c_void {
    if object.is_null() {
        return GC_malloc(bytes);
    }
    if bytes == 0 {
        // SAFETY: the object is not used any more, by the `# Safety` section.
        unsafe { vel::vel_gc_free(object) };
        return null_mut();
    }
    // SAFETY: the old object is not used after it has moved, by the `# Safety` section.
    let new = or_out_of_memory(unsafe { vel::vel_gc_realloc(object, with_end(bytes)) }, bytes);
    if core::ptr::eq(new, object) { new } else { leaks::made(new) }
}

passes! {
    /// Frees an object now; ignores null.
    "The object is not used any more."
    GC_free(object: *mut c_void) = vel::vel_gc_free(object);
    /// Copies a C string into an object without pointers.
    "`text` is null or a C string."
    GC_strdup(text: *const c_char) -> *mut c_char = copy(text, usize::MAX, |bytes| GC_malloc_atomic(bytes));
    /// Copies at most the first `bytes` bytes of a C string, and adds a zero.
    "`text` is null, a C string, or has that many bytes."
    GC_strndup(text: *const c_char, bytes: usize) -> *mut c_char
        = copy(text, bytes, |bytes| GC_malloc_atomic(bytes));
    /// Copies a wide string.
    "`text` ends with a zero."
    GC_wcsdup(text: *const libc::wchar_t) -> *mut libc::wchar_t
        = copy_wide(text, |bytes| GC_malloc_atomic(bytes));
    /// Stores a pointer into an object.
    "`place` can be written."
    GC_ptr_store_and_dirty(place: *mut c_void, value: *const c_void)
        = place.cast::<*const c_void>().write(value);
}

/// Frees an object after overwriting its first `bytes` bytes with zeros; ignores null.
///
/// # Safety
/// As [`GC_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_freezero(object: *mut c_void, bytes: usize) {
    // SAFETY: the length is within the object, which is not used any more, by the `# Safety` section.
    unsafe {
        wipe(object, bytes.min(GC_size(object)));
        GC_free(object);
    }
}

/// Overwrites `bytes` bytes with zeros, even if nothing reads them.
///
/// # Safety
/// The bytes can be written.
pub(crate) unsafe fn wipe(object: *mut c_void, bytes: usize) {
    // SAFETY: the bytes can be written, by the `# Safety` section.
    unsafe { object.write_bytes(0, bytes) };
    core::hint::black_box(object);
}

/// [`GC_realloc`], which frees the object if there is no memory.
///
/// # Safety
/// The old object is not used any more, whatever the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_reallocf(object: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the old object is not used any more, by the `# Safety` section.
    unsafe {
        let new = GC_realloc(object, bytes);
        if new.is_null() && bytes != 0 {
            GC_free(object);
        }
        new
    }
}

/// Allocates an object at the start of a page.
#[unsafe(no_mangle)]
pub extern "C" fn GC_valloc(bytes: usize) -> *mut c_void {
    GC_memalign(PAGE, bytes)
}

/// Allocates an object of whole pages.
#[unsafe(no_mangle)]
pub extern "C" fn GC_pvalloc(bytes: usize) -> *mut c_void {
    match bytes.max(1).checked_next_multiple_of(PAGE) {
        Some(bytes) => GC_memalign(PAGE, bytes),
        None => out_of_memory(bytes),
    }
}

/// Allocates objects of one size, chained by their first words.
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
        // SAFETY: the object is new and has at least a word.
        unsafe { object.cast::<*mut c_void>().write(first) };
        (first, left) = (object, left - 1);
    }
    or_out_of_memory(first, bytes)
}

/// Allocates objects without pointers, chained by their first words. The chain keeps only its first object
/// alive, as with libgc: during a collection the program must mark the words or drop the chain.
fn atomic_many(bytes: usize) -> *mut c_void {
    let each = with_end(bytes).max(size_of::<usize>());
    // Keeps the objects alive until the chain is complete.
    let mut objects = [null_mut::<c_void>(); MANY_BYTES / GRANULE];
    let mut count = 0;
    for object in &mut objects[..(MANY_BYTES / each).clamp(1, MANY_BYTES / GRANULE)] {
        *object = vel::alloc_atomic(each);
        if object.is_null() {
            break;
        }
        count += 1;
    }
    // Forces the array onto the stack, which collections scan.
    let objects = core::hint::black_box(&objects);
    let mut first = null_mut::<c_void>();
    for &object in objects[..count].iter().rev() {
        // SAFETY: the object is new and has at least a word.
        unsafe { object.cast::<*mut c_void>().write(first) };
        first = object;
    }
    or_out_of_memory(first, bytes)
}

/// Stores a chain of [`GC_malloc_many`] for a kind at `result`.
///
/// # Safety
/// `result` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_generic_malloc_many(bytes: usize, kind: c_int, result: *mut *mut c_void) {
    let list = match usize::try_from(kind) {
        Ok(NORMAL) if is_plain() => GC_malloc_many(bytes),
        Ok(POINTER_FREE) if is_plain() => atomic_many(bytes),
        // A chain is kept alive by its words, so kinds that do not scan all words get one object at a time.
        _ => alone(bytes, kind),
    };
    // SAFETY: `result` can be written, by the `# Safety` section.
    unsafe { result.write(list) };
}

fn alone(bytes: usize, kind: c_int) -> *mut c_void {
    let object = crate::kinds::GC_generic_malloc(bytes.max(size_of::<usize>()), kind);
    if !object.is_null() {
        // SAFETY: the object is new and has at least a word.
        unsafe { object.cast::<usize>().write(0) };
    }
    object
}

/// Copies at most `bytes` bytes of a C string (`usize::MAX` for all) into an object that `make` allocates.
///
/// # Safety
/// `text` is null, a C string, or has that many bytes.
pub(crate) unsafe fn copy(
    text: *const c_char,
    bytes: usize,
    make: impl FnOnce(usize) -> *mut c_void,
) -> *mut c_char {
    if text.is_null() {
        return null_mut();
    }
    // SAFETY: `text` ends within `bytes` bytes, or has that many, by the `# Safety` section.
    let length = unsafe { if bytes == usize::MAX { libc::strlen(text) } else { libc::strnlen(text, bytes) } };
    let copy = make(length + 1).cast::<c_char>();
    if !copy.is_null() {
        // SAFETY: the copy is new and has `length + 1` bytes.
        unsafe {
            copy.copy_from_nonoverlapping(text, length);
            copy.add(length).write(0);
        }
    }
    copy
}

/// Copies a wide string into an object that `make` allocates.
///
/// # Safety
/// `text` ends with a zero.
pub(crate) unsafe fn copy_wide(
    text: *const libc::wchar_t,
    make: impl FnOnce(usize) -> *mut c_void,
) -> *mut libc::wchar_t {
    // SAFETY: `text` ends with a zero, by the `# Safety` section.
    let length = unsafe { libc::wcslen(text) } + 1;
    let copy = make(length * size_of::<libc::wchar_t>()).cast::<libc::wchar_t>();
    if !copy.is_null() {
        // SAFETY: both have `length` characters, and the copy is new.
        unsafe { copy.copy_from_nonoverlapping(text, length) };
    }
    copy
}

/// The start of the object that contains `address`; null for any other address.
#[unsafe(no_mangle)]
pub extern "C" fn GC_base(address: *mut c_void) -> *mut c_void {
    // SAFETY: the function accepts any address.
    unsafe { vel::vel_gc_base(address) }
}

/// The usable bytes of the object that starts here.
#[unsafe(no_mangle)]
pub extern "C" fn GC_size(object: *const c_void) -> usize {
    // SAFETY: the function accepts any address.
    unsafe { vel::vel_gc_size(object) }
}

/// Returns 1 if `address` lies in an object.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_heap_ptr(address: *const c_void) -> c_int {
    // SAFETY: the function accepts any address.
    c_int::from(!unsafe { vel::vel_gc_base(address) }.is_null())
}
