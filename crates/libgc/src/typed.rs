//! `gc_typed.h`: objects whose pointers are located by a bitmap (`descriptors`).

use crate::descriptors::{self, Descriptor, WORD, layout_of_elements, layout_of_objects};
use crate::variables::finds_leaks;
use crate::{allocate, leaks, settings, start, vel};
use core::ffi::{c_int, c_void};

/// A descriptor of objects of which word `i` may be a pointer if bit `i` of `bitmap` is set, and none from
/// word `bits` on.
///
/// # Safety
/// `bitmap` has that many bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_make_descriptor(bitmap: *const usize, bits: usize) -> Descriptor {
    start::ensure();
    // SAFETY: passed on.
    unsafe { descriptors::make(bitmap, bits) }
}

/// `object`, of `bytes` bytes, or what the program's procedure returns where there is no memory.
fn made(object: *mut c_void, bytes: usize) -> *mut c_void {
    match object {
        object if object.is_null() => settings::out_of_memory(bytes),
        object if finds_leaks() => leaks::made(object),
        object => object,
    }
}

/// An object of a described kind.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_explicitly_typed(bytes: usize, descriptor: Descriptor) -> *mut c_void {
    start::ensure();
    match layout_of_objects(descriptor, bytes) {
        Some(layout) if bytes <= vel::TYPE_MAX => made(vel::alloc_typed(layout), bytes),
        Some(layout) => {
            // SAFETY: a type of the library's.
            let object = unsafe { vel::vel_gc_new_array(layout, elements(layout, bytes)) };
            made(object, bytes)
        }
        None => allocate::GC_malloc(bytes),
    }
}

/// Elements of a type for long objects, in one of `bytes` bytes: a word each, or, without pointers, as long
/// as a type can be.
fn elements(layout: &vel::Layout, bytes: usize) -> usize {
    let each = if layout.bytes as usize >= vel::TYPE_MAX { vel::TYPE_MAX } else { WORD };
    bytes.div_ceil(each)
}

/// The same.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_explicitly_typed_ignore_off_page(
    bytes: usize,
    descriptor: Descriptor,
) -> *mut c_void {
    GC_malloc_explicitly_typed(bytes, descriptor)
}

/// An array of `count` elements of a described kind.
#[unsafe(no_mangle)]
pub extern "C" fn GC_calloc_explicitly_typed(
    count: usize,
    bytes: usize,
    descriptor: Descriptor,
) -> *mut c_void {
    start::ensure();
    let Some(whole) = count.checked_mul(bytes) else { return settings::out_of_memory(usize::MAX) };
    // Elements follow each other at whole words here.
    let is_whole = bytes.is_multiple_of(WORD) && count > 0;
    let Some(layout) = is_whole.then(|| layout_of_elements(descriptor, bytes)).flatten() else {
        return allocate::GC_malloc(whole);
    };
    let count = if bytes > vel::TYPE_MAX { elements(layout, whole) } else { count };
    // SAFETY: a type of the library's.
    made(unsafe { vel::vel_gc_new_array(layout, count) }, whole)
}

/// `struct GC_calloc_typed_descr_s`: an array that was described and is to be made, perhaps many times.
#[repr(C)]
pub struct Prepared {
    count: usize,
    bytes: usize,
    descriptor: Descriptor,
    rest: [usize; 5],
}

/// Describes an array of `count` elements at `place`, of which `room` bytes can be written; 0: there is no
/// such array.
///
/// # Safety
/// That many bytes can be written.
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
    // SAFETY: by this function's condition.
    unsafe { place.write(Prepared { count, bytes, descriptor, rest: [0; 5] }) };
    c_int::from(count.checked_mul(bytes).is_some())
}

/// Makes an array that was described.
///
/// # Safety
/// `place` has what [`GC_calloc_prepare_explicitly_typed`] wrote.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_calloc_do_explicitly_typed(place: *const Prepared, _room: usize) -> *mut c_void {
    // SAFETY: by this function's condition.
    let Prepared { count, bytes, descriptor, .. } = unsafe { place.read() };
    GC_calloc_explicitly_typed(count, bytes, descriptor)
}
