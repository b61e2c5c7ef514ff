//! The fast paths of `malloc`, `calloc` and `free`, inlined into exported functions, and their slow paths.
//!
//! A fast path makes no call and takes no lock. Special cases need no tests of their own: they fail tests
//! that every call makes. A thread without a heap has a heap with empty lists. A request of zero bytes has
//! size class 0, with an empty list. Null lies outside the blocks' address range, like another allocator's
//! blocks.

use crate::class::{CLASSES, COARSE_GRANULE, FINE_MAX, GRANULE, SMALL_MAX, bytes_of};
use crate::errno::out_of_memory;
use crate::heap::Heap;
use crate::holder::Holder;
use crate::misuse::{self, Fault};
use crate::mode::{self, Special};
use crate::serve::{self, Request};
use crate::slab::Block;
use crate::small::{check_live, push_local};
use crate::space::slab_at;
use crate::{harden, tls};
use core::hint::assert_unchecked;

/// Allocates `bytes` bytes; null (and `ENOMEM`) when there are none.
#[inline(always)]
pub fn malloc(bytes: usize) -> *mut u8 {
    if bytes <= FINE_MAX {
        let heap = tls::heap();
        // SAFETY: the table has an entry for every number of granules up to FINE_MAX, a class below CLASSES.
        unsafe { pop(heap, usize::from(heap.fine.get_unchecked(bytes.div_ceil(GRANULE)).get()), bytes) }
    } else if bytes <= SMALL_MAX {
        let heap = tls::heap();
        // SAFETY: the table has an entry for every number of coarse granules below SMALL_MAX, a class below
        // CLASSES.
        unsafe {
            pop(heap, usize::from(heap.coarse.get_unchecked((bytes - 1) / COARSE_GRANULE).get()), bytes)
        }
    } else {
        malloc_large(bytes)
    }
}

/// Safety: `class` is the class of `bytes`, or 0 in the empty heap.
#[inline(always)]
unsafe fn pop(heap: &Heap, class: usize, bytes: usize) -> *mut u8 {
    debug_assert!(class < CLASSES);
    // SAFETY: `class` is below CLASSES: it comes from the heap's tables.
    let list = unsafe { heap.free.get_unchecked(class) };
    let block = list.get();
    if block.is_null() {
        return malloc_slow(bytes);
    }
    // SAFETY: a block on the list is free memory of at least two words.
    let free = unsafe { &*block };
    let Some(next) = free.sealed_next() else {
        return overwritten(block);
    };
    list.set(next);
    free.unseal();
    block.cast()
}

/// Never returns; its type is that of its caller, which can so jump to it.
#[cold]
#[inline(never)]
fn overwritten(block: *mut Block) -> *mut u8 {
    misuse::refuse_small("malloc", block.cast(), Fault::Overwritten)
}

/// Allocates and clears `count` times `bytes` bytes.
#[inline(always)]
pub fn calloc(count: usize, bytes: usize) -> *mut u8 {
    let Some(total) = count.checked_mul(bytes) else {
        return out_of_memory();
    };
    if total > SMALL_MAX {
        return calloc_large(total);
    }
    let block = malloc(total);
    if !block.is_null() {
        // SAFETY: the block has at least `total` bytes.
        unsafe { block.write_bytes(0, total) };
    }
    block
}

/// Frees a block.
///
/// # Safety
/// `address` is null or a block that was handed out and not freed since.
#[inline(always)]
pub unsafe fn free(address: *mut u8) {
    let heap = tls::heap();
    let offset = (address as usize).wrapping_sub(heap.base.get());
    if offset < heap.bytes.get() {
        // SAFETY: `offset` lies within the span.
        let slab = unsafe { slab_at(heap.side.get(), offset) };
        if slab.is_owned_by(heap) {
            // SAFETY: the block is the caller's to give up, and its slab this thread's.
            return unsafe { push_local(slab, address) };
        }
    }
    // SAFETY: the block is the caller's to give up.
    unsafe { free_slow(address) }
}

/// Allocates a small block when the thread's list is empty, or the thread has no heap.
#[cold]
#[inline(never)]
fn malloc_slow(bytes: usize) -> *mut u8 {
    // SAFETY: slabs serve the request, as the callers have tested.
    unsafe { assert_unchecked(bytes <= SMALL_MAX) };
    serve::allocate(Request::plain(bytes))
}

#[cold]
#[inline(never)]
fn malloc_large(bytes: usize) -> *mut u8 {
    // SAFETY: slabs do not serve the request, as the callers have tested.
    unsafe { assert_unchecked(bytes > SMALL_MAX) };
    serve::allocate(Request::plain(bytes))
}

#[cold]
#[inline(never)]
fn calloc_large(bytes: usize) -> *mut u8 {
    // SAFETY: slabs do not serve the request, as the callers have tested.
    unsafe { assert_unchecked(bytes > SMALL_MAX) };
    serve::allocate(Request { zero: true, ..Request::plain(bytes) })
}

/// Allocates `bytes` bytes at a multiple of `align`, a power of two; null (and `ENOMEM`) when there are none.
///
/// Units begin at multiples of 64 KiB and their blocks at multiples of the block size, so that all blocks of
/// a class whose size is a multiple of the alignment are aligned. Other requests are extents, aligned by the
/// page layer.
pub fn aligned(align: usize, bytes: usize) -> *mut u8 {
    debug_assert!(align.is_power_of_two());
    if align <= GRANULE {
        return malloc(bytes);
    }
    let request = Request { bytes, align, zero: false };
    match mode::is_special() {
        false if let Some(class) = request.class() => malloc(bytes_of(class)),
        _ => serve::allocate_in_any_mode(request),
    }
}

/// Frees a block that is not of the calling thread's own slabs. Safety: the conditions of [`free`].
#[cold]
#[inline(never)]
unsafe fn free_slow(address: *mut u8) {
    if address.is_null() {
        return;
    }
    // SAFETY: the caller gives the block up.
    unsafe {
        match mode::special() {
            Some(Special::Hardened) => return harden::free(address, None),
            Some(Special::Sampled(hooks)) if (hooks.free_small)(address) => return,
            _ => {}
        }
        Holder::of(address).free(address);
    }
}

/// Frees a block whose size the program tells, as `operator delete` with a size does. A size that does not
/// fit in the block is refused; in the hardened mode, any but the one that was asked for.
///
/// # Safety
/// The conditions of [`free`].
#[inline(always)]
pub unsafe fn free_sized(address: *mut u8, bytes: usize) {
    let heap = tls::heap();
    let offset = (address as usize).wrapping_sub(heap.base.get());
    if offset < heap.bytes.get() {
        // SAFETY: `offset` lies within the span.
        let slab = unsafe { slab_at(heap.side.get(), offset) };
        if slab.is_owned_by(heap) && bytes <= slab.bytes.get() as usize {
            // SAFETY: the block is the caller's to give up, and its slab this thread's.
            return unsafe { push_local(slab, address) };
        }
    }
    // SAFETY: the caller gives the block up.
    unsafe { free_sized_slow(address, bytes) }
}

/// Safety: the conditions of [`free`].
#[cold]
#[inline(never)]
unsafe fn free_sized_slow(address: *mut u8, bytes: usize) {
    // SAFETY: the caller gives the block up; a slab's description is that of the block's unit.
    unsafe {
        if mode::is_hardened() && !address.is_null() {
            return harden::free(address, Some(bytes));
        }
        if let Holder::Slab(slab) = Holder::of(address) {
            let has = slab.bytes.get() as usize;
            if bytes > has {
                check_live("free", slab, address);
                misuse::refuse_size(address, bytes, has);
            }
        }
        free_slow(address);
    }
}

/// The bytes that may be used of a block; 0 for null.
///
/// # Safety
/// The conditions of [`free`].
pub unsafe fn usable_size(address: *mut u8) -> usize {
    if address.is_null() {
        return 0;
    }
    if mode::is_hardened() {
        // SAFETY: the block is in use, by this function's condition.
        return unsafe { harden::usable_size("malloc_usable_size", address) };
    }
    // SAFETY: the block is in use, by this function's condition.
    unsafe { Holder::of(address).usable_size("malloc_usable_size", address) }
}
