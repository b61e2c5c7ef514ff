//! `malloc`, `calloc` and `free`: fast paths that inline into the exported symbols, and the slow paths behind them.
//!
//! The fast paths make no call, take no lock and test nothing that the slow path could: no *has this thread a heap?*
//! (the empty heap's lists are empty), no *is the size zero?* (class 0 is empty), no *is the address null?* (it lies
//! outside every span).

use crate::class::{CLASSES, FINE_MAX, SMALL_MAX, class_of, coarse_class_of, fine_class_of};
use crate::heap::Heap;
use crate::slab::{Block, Slab};
use crate::space::{Space, push_remote, slab_at};
use crate::{aside, foreign, large, misuse, registry, tls};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Relaxed, Release};
use vellum_pages::Misuse;

/// The largest request: differences of pointers into a block must fit, as in the C library.
pub(crate) const REQUEST_MAX: usize = isize::MAX as usize;

/// Allocates `bytes` bytes; null (and `ENOMEM`) when there are none.
#[inline(always)]
pub fn malloc(bytes: usize) -> *mut u8 {
    if bytes <= FINE_MAX {
        // SAFETY: the size is fine, and every class is below CLASSES.
        unsafe { pop(fine_class_of(bytes), bytes) }
    } else if bytes <= SMALL_MAX {
        // SAFETY: every class is below CLASSES.
        unsafe { pop(coarse_class_of(bytes), bytes) }
    } else {
        large::malloc(bytes)
    }
}

/// # Safety
/// `class` is the class of `bytes`.
#[inline(always)]
unsafe fn pop(class: usize, bytes: usize) -> *mut u8 {
    debug_assert!(class < CLASSES);
    // SAFETY: the caller vouches for `class`.
    let list = unsafe { tls::heap().free.get_unchecked(class) };
    let block = list.get();
    if block.is_null() {
        return malloc_slow(bytes);
    }
    // SAFETY: a block on the list is free memory of at least a word.
    list.set(unsafe { (*block).next.get() });
    block.cast()
}

/// Allocates and clears `count` times `bytes` bytes.
#[inline(always)]
pub fn calloc(count: usize, bytes: usize) -> *mut u8 {
    let Some(total) = count.checked_mul(bytes) else {
        return out_of_memory();
    };
    if total > SMALL_MAX {
        return large::calloc(total);
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
        if core::ptr::eq(slab.owner.load(Relaxed), heap) {
            // SAFETY: the block is the caller's to give up, and its slab this thread's.
            return unsafe { push_local(slab, address) };
        }
    }
    // SAFETY: passed on.
    unsafe { free_slow(address) }
}

/// # Safety
/// `address` is a block in use of `slab`, which belongs to the calling thread's heap.
#[inline(always)]
unsafe fn push_local(slab: &'static Slab, address: *mut u8) {
    let block = address.cast::<Block>();
    let head = slab.free.get();
    if head == block {
        return freed_twice(address);
    }
    // SAFETY: the block is free memory now.
    unsafe { (*block).next.set(head) };
    slab.free.set(block);
    let needed = slab.needed.load(Relaxed).wrapping_sub(1);
    // After the list: see `Slab::live`.
    slab.needed.store(needed, Release);
    if needed == 0 {
        settle(slab);
    }
}

#[cold]
#[inline(never)]
fn freed_twice(address: *mut u8) {
    misuse::refuse("free", address, Misuse::AlreadyFree)
}

#[cold]
#[inline(never)]
fn settle(slab: &'static Slab) {
    let heap = tls::heap();
    if heap.gate.enter() {
        heap.settle(slab);
        heap.gate.leave();
    } else {
        Heap::settle_later(slab);
    }
}

/// Allocates a small block when the thread's list is empty, or the thread has no heap.
#[cold]
#[inline(never)]
fn malloc_slow(bytes: usize) -> *mut u8 {
    let Some(heap) = registry::attached() else {
        return match aside::next() {
            // SAFETY: plain malloc.
            Some(next) => unsafe { (next.malloc)(bytes) }.cast(),
            None => out_of_memory(),
        };
    };
    let class = class_of(bytes.max(1));
    let mut block = heap.free[class].get();
    if block.is_null() {
        if !heap.gate.enter() {
            // A signal handler interrupted this very path: the page layer serves it.
            return large::malloc(bytes.max(1));
        }
        block = heap.refill(class);
        heap.gate.leave();
        if block.is_null() {
            return out_of_memory();
        }
    }
    // SAFETY: a block on the list is free memory of at least a word.
    heap.free[class].set(unsafe { (*block).next.get() });
    block.cast()
}

/// Frees what is not a block of the calling thread's own slabs.
///
/// # Safety
/// As for [`free`].
#[cold]
#[inline(never)]
unsafe fn free_slow(address: *mut u8) {
    if address.is_null() {
        return;
    }
    let Some(slab) = Space::get().slab_of(address) else {
        // SAFETY: passed on.
        return unsafe { foreign::free(address) };
    };
    if slab.owner.load(Relaxed).is_null() {
        // SAFETY: passed on.
        return unsafe { large::free(slab, address) };
    }
    // SAFETY: the block is the caller's to give up.
    if !unsafe { push_remote(slab, address, address, 1) } {
        freed_twice(address);
    }
}

/// The bytes that may be used of a block; 0 for null.
///
/// # Safety
/// As for [`free`].
pub unsafe fn usable_size(address: *mut u8) -> usize {
    if address.is_null() {
        return 0;
    }
    let Some(slab) = Space::get().slab_of(address) else {
        // SAFETY: passed on.
        return unsafe { foreign::usable_size(address) };
    };
    if slab.owner.load(Relaxed).is_null() {
        return large::usable_size("malloc_usable_size", address);
    }
    slab.bytes.get() as usize
}

/// Sets `errno` to `ENOMEM`; null.
#[cold]
#[inline(never)]
pub(crate) fn out_of_memory() -> *mut u8 {
    set_errno(libc::ENOMEM);
    null_mut()
}

/// The thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() }
}

/// Sets the thread's `errno`.
pub fn set_errno(value: i32) {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = value };
}
