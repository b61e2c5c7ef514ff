//! `gc_typed.h`: objects whose pointers are located by a bitmap (`descriptors`).

use crate::descriptors::{self, Descriptor, WORD, layout_of_elements, layout_of_objects};
use crate::forms::same;
use crate::variables::finds_leaks;
use crate::{allocate, leaks, settings, start, vel};
use core::ffi::{c_int, c_void};

/// Makes a descriptor from `bits` bits of `bitmap`: word `i` of an object may be a pointer if bit `i` is set.
/// Words beyond the bitmap are not pointers.
///
/// # Safety
/// `bitmap` has `bits` bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_make_descriptor(bitmap: *const usize, bits: usize) -> Descriptor {
    start::ensure();
    // SAFETY: `bitmap` has `bits` bits, by the `# Safety` section.
    unsafe { descriptors::make(bitmap, bits) }
}

/// Returns `object`, of `bytes` bytes, or the out-of-memory procedure's result for null.
fn made(object: *mut c_void, bytes: usize) -> *mut c_void {
    match object {
        object if object.is_null() => settings::out_of_memory(bytes),
        object if finds_leaks() => leaks::made(object),
        object => object,
    }
}

/// Allocates an object with a descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_explicitly_typed(bytes: usize, descriptor: Descriptor) -> *mut c_void {
    start::ensure();
    match layout_of_objects(descriptor, bytes) {
        Some(layout) if bytes <= vel::TYPE_MAX => made(vel::alloc_typed(layout), bytes),
        Some(layout) => {
            // SAFETY: the layout came from `libvellum.so`, which never frees layouts.
            let object = unsafe { vel::vel_gc_new_array(layout, elements(layout, bytes)) };
            made(object, bytes)
        }
        None => allocate::GC_malloc(bytes),
    }
}

/// The number of elements of a long object of `bytes` bytes. Elements are words, or, without pointers, as
/// long as a type can be.
fn elements(layout: &vel::Layout, bytes: usize) -> usize {
    let each = if layout.bytes as usize >= vel::TYPE_MAX { vel::TYPE_MAX } else { WORD };
    bytes.div_ceil(each)
}

same! {
    /// Like [`GC_malloc_explicitly_typed`].
    GC_malloc_explicitly_typed_ignore_off_page(
        bytes: usize, descriptor: Descriptor
    ) -> *mut c_void = GC_malloc_explicitly_typed;
}

/// Allocates an array of `count` elements with a descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn GC_calloc_explicitly_typed(
    count: usize,
    bytes: usize,
    descriptor: Descriptor,
) -> *mut c_void {
    start::ensure();
    let Some(whole) = count.checked_mul(bytes) else { return settings::out_of_memory(usize::MAX) };
    // Elements of the heap's arrays have whole words.
    let is_whole = bytes.is_multiple_of(WORD) && count > 0;
    let Some(layout) = is_whole.then(|| layout_of_elements(descriptor, bytes)).flatten() else {
        return allocate::GC_malloc(whole);
    };
    let count = if bytes > vel::TYPE_MAX { elements(layout, whole) } else { count };
    // SAFETY: the layout came from `libvellum.so`, which never frees layouts.
    made(unsafe { vel::vel_gc_new_array(layout, count) }, whole)
}

/// `struct GC_calloc_typed_descr_s`: the description of an array that may be made many times.
#[repr(C)]
pub struct Prepared {
    count: usize,
    bytes: usize,
    descriptor: Descriptor,
    rest: [usize; 5],
}

/// Writes the description of an array of `count` elements to `place`, which has `room` bytes; returns 0 if
/// the array is too large.
///
/// # Safety
/// `room` bytes can be written at `place`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_calloc_prepare_explicitly_typed(
    place: *mut Prepared,
    room: usize,
    count: usize,
    bytes: usize,
    descriptor: Descriptor,
) -> c_int {
    if room < size_of::<Prepared>() {
        crate::abort::give_up(c"libgc: GC_calloc_prepare_explicitly_typed: the structure is too small");
    }
    // SAFETY: `place` has `room` bytes (`# Safety`), which the check above compared.
    unsafe { place.write(Prepared { count, bytes, descriptor, rest: [0; 5] }) };
    c_int::from(count.checked_mul(bytes).is_some())
}

/// Allocates an array from its description.
///
/// # Safety
/// [`GC_calloc_prepare_explicitly_typed`] wrote `place`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_calloc_do_explicitly_typed(place: *const Prepared, _room: usize) -> *mut c_void {
    // SAFETY: `place` was written before, by the `# Safety` section.
    let Prepared { count, bytes, descriptor, .. } = unsafe { place.read() };
    GC_calloc_explicitly_typed(count, bytes, descriptor)
}
