//! `gc_typed.h`: objects of which a bitmap says where pointers are.
//!
//! A descriptor there is a word made from a bitmap, without a size; here a type has both. So the word is the
//! address of a record with the bitmap and the type of the size last asked for, which is nearly always the
//! same.

use crate::{allocate, start, vel};
use core::ffi::c_void;
use core::ptr::{null, null_mut};
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

/// `GC_descr`.
pub type Descriptor = usize;

const WORD: usize = size_of::<usize>();
const BITS: usize = vel::TYPE_MAX / WORD;
/// Every word may be a pointer: the layout for a bitmap that there is no memory for.
const ANY: Descriptor = 0;

/// What a descriptor stands for. Made once for each call and never freed: programs make them at their start.
struct Record {
    bitmap: [u64; BITS / 64],
    /// The layout last made.
    last: AtomicPtr<Sized>,
}

/// A layout and the size asked for.
struct Sized {
    bytes: usize,
    layout: *const vel::Layout,
    next: *const Sized,
}

/// A descriptor of objects of which word `i` may be a pointer if bit `i` of `bitmap` is set, and none from
/// word `bits` on.
///
/// # Safety
/// `bitmap` has that many bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_make_descriptor(bitmap: *const usize, bits: usize) -> Descriptor {
    start::ensure();
    let mut words = [0; BITS / 64];
    if bits > BITS {
        return ANY;
    }
    for bit in 0..bits {
        // SAFETY: the caller vouches for that many bits.
        let is_set = unsafe { bitmap.add(bit / 64).read() } >> (bit % 64) & 1 != 0;
        words[bit / 64] |= u64::from(is_set) << (bit % 64);
    }
    // SAFETY: plain call.
    let record = unsafe { libc::malloc(size_of::<Record>()) }.cast::<Record>();
    if record.is_null() {
        return ANY;
    }
    // SAFETY: that many bytes are there, aligned as malloc aligns.
    unsafe { record.write(Record { bitmap: words, last: AtomicPtr::new(null_mut()) }) };
    record.expose_provenance()
}

/// The layout of objects of `bytes` bytes; null if there is none.
fn layout(descriptor: Descriptor, bytes: usize) -> *const vel::Layout {
    if descriptor == ANY || bytes == 0 || bytes > vel::TYPE_MAX {
        return null();
    }
    // SAFETY: what GC_make_descriptor made lives for ever.
    let record = unsafe { &*core::ptr::with_exposed_provenance::<Record>(descriptor) };
    let first = record.last.load(Acquire);
    let mut this: *const Sized = first;
    while !this.is_null() {
        // SAFETY: records are never freed.
        let sized = unsafe { &*this };
        if sized.bytes == bytes {
            return sized.layout;
        }
        this = sized.next;
    }
    // SAFETY: the bitmap has a bit for each word of the longest type.
    let layout = unsafe { vel::vel_gc_type_of(bytes, record.bitmap.as_ptr()) };
    // SAFETY: plain call.
    let sized = unsafe { libc::malloc(size_of::<Sized>()) }.cast::<Sized>();
    if !layout.is_null() && !sized.is_null() {
        // SAFETY: that many bytes are there. A race loses one of two equal entries.
        unsafe { sized.write(Sized { bytes, layout, next: first }) };
        record.last.store(sized, Release);
    }
    layout
}

/// An object of a described kind.
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_explicitly_typed(bytes: usize, descriptor: Descriptor) -> *mut c_void {
    start::ensure();
    // SAFETY: null or a layout, which lives for ever.
    match unsafe { layout(descriptor, bytes).as_ref() } {
        Some(layout) => {
            let object = vel::alloc_typed(layout);
            if object.is_null() { crate::settings::out_of_memory(bytes) } else { object }
        }
        // Longer than types are: any word may be a pointer.
        None => allocate::GC_malloc(bytes),
    }
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
    let Some(whole) = count.checked_mul(bytes) else { return crate::settings::out_of_memory(usize::MAX) };
    let layout = layout(descriptor, bytes);
    // Elements follow each other at whole words here.
    if layout.is_null() || !bytes.is_multiple_of(WORD) || count == 0 {
        return allocate::GC_malloc(whole);
    }
    // SAFETY: a layout of the library's.
    let object = unsafe { vel::vel_gc_new_array(layout, count) };
    if object.is_null() { crate::settings::out_of_memory(whole) } else { object }
}
