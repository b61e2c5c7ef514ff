//! `realloc`: blocks are resized in place if possible, and copied otherwise.
//!
//! A small block stays in place if the new size fits and is at least half of the block. The page layer
//! resizes a large block, in place or by moving it. A change between these kinds is a copy.

use crate::alloc::{free, malloc};
use crate::class::{REQUEST_MAX, SMALL_MAX};
use crate::errno::out_of_memory;
use crate::holder::Holder;
use crate::{foreign, harden, large, mode, paged};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use vellum_pages::PAGE;

/// A small block is left in place while at least this fraction of it stays in use.
const KEEP_DIVISOR: usize = 2;

/// True if a small block of `old` bytes stays in place with a new size of `bytes`.
#[inline]
pub(crate) fn stays(old: usize, bytes: usize) -> bool {
    bytes <= old && bytes >= old / KEEP_DIVISOR
}

/// Resizes the block at `address` to `bytes` bytes. Null leaves it as it was; `bytes == 0` frees it.
///
/// # Safety
/// `address` is null or a block in use; unless the result is null, only the result may be used afterwards.
#[inline]
pub unsafe fn realloc(address: *mut u8, bytes: usize) -> *mut u8 {
    if address.is_null() {
        return malloc(bytes);
    }
    if mode::is_special() && mode::is_hardened() {
        // SAFETY: the block is in use, by this function's condition, and not null.
        return unsafe { harden::realloc(address, bytes) };
    }
    let holder = Holder::of(address);
    if let Holder::Other = holder {
        // SAFETY: the block is in use, by this function's condition.
        return unsafe { foreign::realloc(address, bytes) };
    }
    if bytes == 0 {
        // SAFETY: the block is given up, as the C library does it.
        unsafe { free(address) };
        return null_mut();
    }
    // SAFETY: the block is in use, by this function's condition, and its holder is not another allocator.
    let old = unsafe { holder.usable_size("realloc", address) };
    let new = match holder {
        Holder::Slab(slab) if stays(old, bytes) => {
            if let Some(hooks) = mode::sampler() {
                (hooks.resized_small)(slab.owner.load(Relaxed).addr(), address, [old, bytes]);
            }
            return address;
        }
        // SAFETY: the block is large and in use.
        Holder::Extent(_) if bytes > SMALL_MAX => return unsafe { resize_extent(address, old, bytes) },
        // SAFETY: the block is paged and in use.
        Holder::Paged if unsafe { paged::resize(address, bytes) } => return address,
        _ => malloc(bytes),
    };
    // SAFETY: the block is in use; `new` is null or another block of at least `bytes` bytes.
    unsafe { move_to(new, address, old.min(bytes)) }
}

/// Resizes a block of the page layer of `old` bytes, which stays one or becomes the pager's. Safety: the
/// conditions of [`realloc`].
#[inline(never)]
unsafe fn resize_extent(address: *mut u8, old: usize, bytes: usize) -> *mut u8 {
    if bytes > REQUEST_MAX {
        return out_of_memory();
    }
    if bytes.next_multiple_of(PAGE) == old {
        return address;
    }
    // SAFETY: the block is large and in use; a new one has at least `bytes` bytes.
    unsafe {
        match paged::serves(bytes) {
            true => move_to(paged::alloc(bytes, PAGE, false), address, old.min(bytes)),
            false => large::resize(address, bytes),
        }
    }
}

/// Moves `bytes` bytes to `new` and frees the block at `address`, unless `new` is null. Returns `new`.
/// Safety: `address` is a block in use that the caller gives up; `new` is null or another, and both have
/// `bytes` bytes.
#[inline(always)]
pub(crate) unsafe fn move_to(new: *mut u8, address: *mut u8, bytes: usize) -> *mut u8 {
    if !new.is_null() {
        // SAFETY: both blocks have `bytes` bytes and differ, and the caller gives the old one up.
        unsafe {
            new.copy_from_nonoverlapping(address, bytes);
            free(address);
        }
    }
    new
}

/// Resizes to `count` times `bytes` bytes, or fails if that overflows.
///
/// # Safety
/// The conditions of [`realloc`].
pub unsafe fn reallocarray(address: *mut u8, count: usize, bytes: usize) -> *mut u8 {
    match count.checked_mul(bytes) {
        // SAFETY: the block is null or in use, by this function's condition.
        Some(total) => unsafe { realloc(address, total) },
        None => out_of_memory(),
    }
}
